from __future__ import annotations

import json

import numpy as np
import pytest

from realmctl.errors import ConfigError, InputError, QualityError
from realmctl.index.build import build
from realmctl.index.exact import ExactIndex
from realmctl.index.index_type import open_index
from realmctl.index.names import INDEX_TYPES
from realmctl.index.settings import IndexSettings
from tests.fixtures.index import built, clustered, folder_with


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_exact_from_vectors_to_answers(tmp_path, dtype):
    matrix = clustered(50).astype(dtype)
    assert build(folder_with(tmp_path, matrix), IndexSettings(type="exact"))["recall"] == 1.0
    index = open_index(tmp_path)
    assert isinstance(index, ExactIndex)
    assert (index.search(matrix[:9], 5)[1] == ExactIndex(matrix).search(matrix[:9], 5)[1]).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", "vectors.npy"]


def test_a_type_that_measures_nothing_is_measured(tmp_path, monkeypatch):
    monkeypatch.setitem(INDEX_TYPES.core, "first", "tests.fixtures.index:FirstRowsType")
    options = {"type": "first", "recall_k": (4,), "recall_sample": 50}
    metrics = build(folder_with(tmp_path, clustered(400)), IndexSettings(**options, min_recall=0.0))
    assert 0 <= metrics["recall"] < 0.5 and metrics["recall_queries"] == 50
    with pytest.raises(QualityError, match="first"):
        build(folder_with(tmp_path, clustered(400)), IndexSettings(**options))
    with pytest.raises(InputError, match=r"index.json"):
        open_index(tmp_path)


def test_an_unknown_type_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(ConfigError, match="tree"):
        build(folder_with(tmp_path, clustered(9)), IndexSettings(type="tree"))


@pytest.mark.parametrize(
    "change",
    [{"type": "tree"}, {"count": "9"}, {"count": 0}, {"metric": "l2"}, {"dimension": True}, {"more": 1}],
    ids=str,
)
def test_a_description_that_cannot_be_is_refused(tmp_path, change):
    built(tmp_path, clustered(9), type="exact")
    path = tmp_path / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=r"index.json"):
        open_index(tmp_path)


def test_vectors_that_are_not_finite_are_refused_before_anything_is_built(tmp_path):
    matrix = clustered(50)
    matrix[3] = np.nan
    with pytest.raises(InputError, match="Row 3"):
        build(folder_with(tmp_path, matrix), IndexSettings(type="exact"))
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.npy"]


@pytest.mark.parametrize(
    "options",
    [{"recall_k": (8, 0)}, {"recall_sample": 0}, {"min_recall": 1.01}, {"min_recall": -0.1}, {"seed": -1}, {"ef": 0}],
    ids=str,
)
def test_options_that_cannot_work_are_refused(tmp_path, options):
    with pytest.raises(ConfigError, match=next(iter(options)).replace("_", "-")):
        build(folder_with(tmp_path, clustered(9)), IndexSettings(type="exact", **options))
