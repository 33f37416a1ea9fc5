from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from realmctl.errors import InputError
from realmctl.index import build as build_module
from realmctl.index.exact import ExactIndex
from realmctl.index.index_type import open_index
from realmctl.index.settings import IndexSettings
from realmctl.pipeline.trial import NotTried
from stages.build_index import BuildIndex
from tests.fixtures.small_stages import FixtureEmbeddings


@pytest.fixture
def embeddings(tmp_path):
    return FixtureEmbeddings().make(tmp_path / "embeddings")


def test_by_default_an_exact_index_is_made(embeddings, tmp_path):
    artifact = BuildIndex(embeddings=embeddings).make(tmp_path / "index")
    assert artifact.metrics["recall"] == 1.0 and isinstance(open_index(artifact.path), ExactIndex)


def test_the_vectors_are_linked_not_copied(embeddings, tmp_path):
    artifact = BuildIndex(embeddings=embeddings, type="exact").make(tmp_path / "index")
    assert artifact.file("vectors.npy").samefile(embeddings.file("embeddings.npy"))
    assert isinstance(open_index(artifact.path), ExactIndex)


def test_vectors_that_are_not_finite_are_refused(tmp_path):
    broken = FixtureEmbeddings(broken_row=7).make(tmp_path / "embeddings")
    with pytest.raises(InputError, match="Row 7"):
        BuildIndex(embeddings=broken).make(tmp_path / "index")


def test_a_trial_builds_an_index_of_some_rows_and_counts_all(monkeypatch, tmp_path):
    """A row takes a second by this clock."""
    now = [0.0]
    monkeypatch.setattr(build_module, "TRIAL_ROWS", 50)
    monkeypatch.setattr(build_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    rows = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    plain = build_module.build

    def slow(folder, settings, device):
        now[0] += len(np.load(folder / "vectors.npy"))
        return plain(folder, settings, device)

    monkeypatch.setattr(build_module, "build", slow)
    found = build_module.try_to_build(rows, IndexSettings())
    assert (found.count, found.unit, found.seconds) == (200, "vectors", 200.0) and now[0] == 50


def test_an_index_that_needs_more_rows_than_a_trial_has_is_not_tried(monkeypatch):
    def refuses(folder, settings, device):
        raise InputError("faiss needs 39 rows for each list")

    monkeypatch.setattr(build_module, "TRIAL_ROWS", 50)
    monkeypatch.setattr(build_module, "build", refuses)
    with pytest.raises(NotTried, match="50 rows cannot be built: faiss needs 39"):
        build_module.try_to_build(np.zeros((200, 8), np.float32), IndexSettings())
    with pytest.raises(InputError):
        build_module.try_to_build(np.zeros((40, 8), np.float32), IndexSettings())
