from __future__ import annotations

import json

import numpy as np
import pytest

from realmctl.artifacts.hashing import digest_file
from realmctl.errors import InputError
from realmctl.index.build import build
from realmctl.index.index_type import open_index, open_part
from realmctl.index.merged import MergedIndex
from realmctl.index.settings import IndexSettings
from tests.fixtures.index import brute_force, built, clustered, folder_with


def shifted(count: int = 3000, dtype: type = np.float32) -> np.ndarray:
    """Embeddings as they lie: one large mean, and dimensions of very different widths."""
    widths = np.geomspace(0.01, 10, 32)
    return ((clustered(count, 32) + 8) * widths).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_finds_and_scores_what_brute_force_does(tmp_path, dtype):
    vectors = shifted(dtype=dtype)
    metrics = build(folder_with(tmp_path, vectors), IndexSettings(type="int8", recall_sample=200))
    assert metrics["recall"] > 0.99 and metrics["recall_k"] in (8, 100)
    queries = shifted(20) - 8
    scores, ids = open_index(tmp_path).search(queries, 100)
    wanted_scores, wanted_ids = brute_force(vectors, queries, 100)
    assert (ids == wanted_ids).mean() > 0.99
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-4)


def test_the_codes_are_a_quarter_of_float32_and_each_is_within_half_a_step(tmp_path):
    vectors = shifted(500)
    built(tmp_path, vectors, type="int8")
    codes = np.load(tmp_path / "codes.npy")
    assert codes.dtype == np.int8 and 4 * codes.nbytes == vectors.nbytes and codes.min() == -127 and codes.max() == 127
    middle = (vectors.max(0) + vectors.min(0)) / 2
    step = (vectors.max(0) - vectors.min(0)) / 254
    assert (np.abs(codes * step + middle - vectors) <= 0.51 * step).all()


def test_a_dimension_without_width_and_a_single_row(tmp_path):
    vectors = clustered(50)
    vectors[:, 3] = 2
    built(tmp_path / "flat", vectors, type="int8")
    assert (open_index(tmp_path / "flat").search(vectors[:5], 9)[1] == brute_force(vectors, vectors[:5], 9)[1]).all()
    built(tmp_path / "one", vectors[:1], type="int8")
    assert open_index(tmp_path / "one").search(vectors, 8)[1].tolist() == [[0]] * 50


def test_codes_rise_with_values_that_float32_hardly_tells_apart(tmp_path):
    """The middle between the two is no number of float32, so both are far from what stands for it."""
    vectors = clustered(50)
    vectors[:, 3] = 2.0**24 + 2 * (np.arange(50) % 2)
    built(tmp_path, vectors, type="int8")
    column = np.load(tmp_path / "codes.npy")[:, 3]
    assert set(column[::2]) == {0} and set(column[1::2]) == {127}


@pytest.mark.parametrize("count", [1, 3, 60])
def test_parts_by_rows_find_what_the_whole_finds(tmp_path, count):
    vectors, queries = clustered(50), clustered(9, seed=1)
    built(tmp_path, vectors, type="int8")
    parts = [open_part(tmp_path, "cpu", rank, count)[0] for rank in range(count)]
    together = MergedIndex([pair for part in parts for pair in part.parts], vectors)
    assert (together.search(queries, 7)[1] == brute_force(vectors, queries, 7)[1]).all()


@pytest.mark.parametrize("step", [[0.1], [0.0] * 32, [-0.1] * 32, [1] * 32])
def test_steps_that_are_no_widths_of_the_dimensions_are_refused(tmp_path, step):
    built(tmp_path, clustered(50, 32), type="int8")
    path = tmp_path / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "step": step}))
    with pytest.raises(InputError, match=r"index\.json"):
        open_index(tmp_path)


@pytest.mark.parametrize("codes", [np.zeros((50, 32), np.uint8), np.zeros((50, 31), np.int8), np.zeros(1600, np.int8)])
def test_codes_of_another_type_or_shape_are_refused(tmp_path, codes):
    built(tmp_path, clustered(50, 32), type="int8")
    np.save(tmp_path / "codes.npy", codes)
    path = tmp_path / "index.json"
    sha256 = digest_file(tmp_path / "codes.npy")
    path.write_text(json.dumps({**json.loads(path.read_text()), "sha256": sha256}))
    with pytest.raises(InputError, match=r"codes\.npy"):
        open_index(tmp_path)


def test_damaged_codes_are_refused(tmp_path):
    built(tmp_path, clustered(50), type="int8")
    data = bytearray((tmp_path / "codes.npy").read_bytes())
    data[-1] ^= 1
    (tmp_path / "codes.npy").write_bytes(data)
    with pytest.raises(InputError, match=r"codes\.npy"):
        open_index(tmp_path)
