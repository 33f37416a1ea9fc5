from __future__ import annotations

import numpy as np
import pytest

from realmctl.errors import InputError, MismatchError
from realmctl.index.vectors import check_finite, chunks, open_vectors
from tests.fixtures.index import clustered


def test_maps_what_was_saved_without_letting_it_be_changed(tmp_path):
    np.save(tmp_path / "v.npy", clustered())
    before = (tmp_path / "v.npy").read_bytes()
    matrix = open_vectors(tmp_path / "v.npy")
    matrix[0] = 0
    matrix.flush()
    assert (tmp_path / "v.npy").read_bytes() == before


def test_refuses_a_cut_file_at_every_length(tmp_path):
    np.save(tmp_path / "v.npy", clustered(4, 4))
    whole = (tmp_path / "v.npy").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "cut.npy").write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cut.npy"):
            open_vectors(tmp_path / "cut.npy")


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3, np.float32),
        np.zeros((2, 2), np.float64),
        np.zeros((2, 0), np.float32),
        np.array([["a"]], object),
    ],
    ids=["one axis", "float64", "empty", "pickle"],
)
def test_refuses_what_is_no_matrix_of_vectors(tmp_path, array):
    np.save(tmp_path / "v.npy", array, allow_pickle=True)
    with pytest.raises(InputError):
        open_vectors(tmp_path / "v.npy")


def test_refuses_another_shape_than_described(tmp_path):
    np.save(tmp_path / "v.npy", clustered(4, 8))
    with pytest.raises(MismatchError, match="dimension 8"):
        open_vectors(tmp_path / "v.npy", count=5, dimension=8)
    with pytest.raises(MismatchError, match="dimension 9"):
        open_vectors(tmp_path / "v.npy", count=4, dimension=9)


def test_chunks_cover_every_row_once():
    matrix = clustered(50)
    parts = list(chunks(matrix, rows=8))
    assert [start for start, _ in parts] == list(range(0, 50, 8))
    assert (np.concatenate([part for _, part in parts]) == matrix).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_names_the_first_row_that_is_not_finite(bad, monkeypatch):
    monkeypatch.setattr("realmctl.index.vectors.ROWS_PER_CHUNK", 8)
    matrix = clustered(50)
    matrix[37, 2] = matrix[41, 0] = bad
    with pytest.raises(InputError, match="Row 37"):
        check_finite(matrix, "the embeddings")
