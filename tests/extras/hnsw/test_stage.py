"""`build-index --type hnsw` as a stage."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from realmctl.errors import ConfigError, QualityError, ResourceError
from realmctl.index.index_type import open_index
from stages.build_index import BuildIndex
from tests.fixtures.index import clustered
from tests.fixtures.small_stages import FixtureEmbeddings


@pytest.fixture
def embeddings(tmp_path):
    return FixtureEmbeddings().make(tmp_path / "embeddings")


def test_a_measured_hnsw_index_is_made(embeddings, tmp_path):
    artifact = BuildIndex(embeddings=embeddings, type="hnsw").make(tmp_path / "index")
    assert sorted(artifact.manifest.files) == ["hnsw.bin", "index.json", "vectors.npy"]
    assert artifact.metrics["recall"] >= 0.95 and artifact.metrics["recall_k"] == 8
    assert artifact.metrics["ef"] == json.loads(artifact.file("index.json").read_text())["ef"]
    assert artifact.lineage == {"embeddings": embeddings.content}
    assert open_index(artifact.path).search(clustered(3), 5)[1].shape == (3, 5)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_both_types_answer_alike(tmp_path, dtype):
    embeddings = FixtureEmbeddings(dtype=dtype).make(tmp_path / "embeddings")
    found = [
        open_index(BuildIndex(embeddings=embeddings, type=kind, **more).make(tmp_path / kind).path).search(
            clustered(20), 4
        )
        for kind, more in (("exact", {}), ("hnsw", {"m": 32}))
    ]
    assert (found[0][1] == found[1][1]).mean() > 0.95
    assert np.median(np.abs(found[0][0] - found[1][0])) < 1e-5


def test_the_same_command_in_two_places_makes_the_same_content(embeddings, tmp_path):
    contents = {BuildIndex(embeddings=embeddings, type="hnsw").make(tmp_path / name).content for name in ("a", "b")}
    assert len(contents) == 1


def test_below_the_recall_floor_nothing_is_published(embeddings, tmp_path):
    weak = BuildIndex(embeddings=embeddings, type="hnsw", m=2, ef_construction=2, ef=1, min_recall=1.0)
    with pytest.raises(QualityError) as error:
        weak.make(tmp_path / "index")
    assert error.value.exit_code == 6
    assert [path.name for path in (tmp_path / "index").iterdir()] == [".lock"]
    with pytest.raises(QualityError):
        weak.make(tmp_path / "index")


def test_a_graph_that_was_not_wholly_written_is_not_published(embeddings, tmp_path, monkeypatch):
    import hnswlib

    def short(graph, path):
        Path(path).write_bytes(b"0" * 1000)

    class Full(hnswlib.Index):
        save_index = short

    monkeypatch.setattr(hnswlib, "Index", Full)
    with pytest.raises(ResourceError, match="Only 1,000 of"):
        BuildIndex(embeddings=embeddings, type="hnsw").make(tmp_path / "index")
    assert [path.name for path in (tmp_path / "index").iterdir()] == [".lock"]


def test_without_hnswlib_the_error_names_the_exact_index_and_that_works(embeddings, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    with pytest.raises(ResourceError, match=r"--type exact") as error:
        BuildIndex(embeddings=embeddings, type="hnsw").make(tmp_path / "index")
    assert error.value.exit_code == 5
    assert BuildIndex(embeddings=embeddings, type="exact").make(tmp_path / "index").metrics["recall"] == 1.0


def test_settings_that_cannot_work_are_refused_before_anything_is_made(embeddings, tmp_path):
    with pytest.raises(ConfigError, match="--m 1"):
        BuildIndex(embeddings=embeddings, type="hnsw", m=1).make(tmp_path / "index")
    assert not (tmp_path / "index").exists()
