"""BM25 of many blocks is kept beside them: made once, opened memory-mapped, and the same."""

from __future__ import annotations

import errno
import shutil

import numpy as np
import pytest

from realmctl.artifacts import open_artifact, version_numbers
from realmctl.errors import InputError
from realmctl.retrieval.search import postings
from realmctl.retrieval.search.postings import Bm25Ranking
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import documents

QUESTIONS = ["Where was Ada born?", "zzz", "Ben met Ada"]


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(postings, "KEPT_FROM", 1)
    return make_blocks(tmp_path / "w/blocks", documents())


def ranked(ranking: Bm25Ranking) -> list[tuple[list[float], list[int]]]:
    found = ranking.ranked(ranking.tokens(QUESTIONS), 9)
    return [(scores.tolist(), rows.tolist()) for scores, rows in found]


@pytest.mark.parametrize("settings", [(None, "pieces"), (None, "words"), ("english", "pieces")])
def test_it_is_made_once_and_gives_the_same(blocks, tmp_path, monkeypatch, settings):
    monkeypatch.setattr(postings, "KEPT_FROM", 1000)
    plain = ranked(Bm25Ranking(blocks, *settings))
    assert any(rows for _, rows in plain) and not (tmp_path / "w/kept-bm25").exists()
    monkeypatch.setattr(postings, "KEPT_FROM", 1)
    made = Bm25Ranking(blocks, *settings)
    assert ranked(made) == plain and version_numbers(tmp_path / "w/kept-bm25") == [1]
    assert isinstance(made.postings.arrays["indices"], np.memmap)  # it was written there, not held
    monkeypatch.setattr(postings.Postings, "of_text", None)  # nothing is computed again
    again = Bm25Ranking(blocks, *settings)
    assert ranked(again) == plain and version_numbers(tmp_path / "w/kept-bm25") == [1]
    assert isinstance(again.postings.arrays["data"], np.memmap)


def test_other_settings_and_other_blocks_are_other_versions(blocks, tmp_path):
    other = make_blocks(tmp_path / "w/blocks", {"Ada": [["Ada met Ben."], ["Ben left."]]})
    for made in (
        Bm25Ranking(blocks),
        Bm25Ranking(blocks, "english"),
        Bm25Ranking(other),
        Bm25Ranking(blocks),
        Bm25Ranking(blocks, "english").over(blocks, None),
    ):
        assert ranked(made)
    assert version_numbers(tmp_path / "w/kept-bm25") == [1, 2, 3]
    assert open_artifact(tmp_path / "w/kept-bm25/v3").lineage["blocks"] == other.content


def test_stems_of_another_release_are_not_looked_for_in_those_that_are_kept(blocks, tmp_path, monkeypatch):
    """PyStemmer 3 stems "evening" to itself, 2.2 to "even" (and Stemmer.version() of 3.0.0 is that of 2.2)."""
    for release in ("2.2.0.3", "3.1.0", "2.2.0.3"):
        monkeypatch.setattr(postings, "version", {"PyStemmer": release}.__getitem__)
        assert ranked(Bm25Ranking(blocks, "english")) and ranked(Bm25Ranking(blocks))
    assert version_numbers(tmp_path / "w/kept-bm25") == [1, 2, 3]


def test_a_full_disk_ends_no_search(blocks, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    expected = ranked(Bm25Ranking(blocks))
    shutil.rmtree(tmp_path / "w/kept-bm25")
    monkeypatch.setattr(postings.os, "posix_fallocate", full)
    assert ranked(Bm25Ranking(blocks)) == expected and version_numbers(tmp_path / "w/kept-bm25") == []
    assert "BM25 is not kept" in capsys.readouterr().err


def test_where_nothing_can_be_kept_it_is_computed(blocks, tmp_path, capsys):
    (tmp_path / "w/kept-bm25").write_text("in the way")
    assert any(rows for _, rows in ranked(Bm25Ranking(blocks)))
    assert "BM25 is not kept" in capsys.readouterr().err


def test_what_was_damaged_is_told(blocks, tmp_path):
    Bm25Ranking(blocks, "english")
    path = tmp_path / "w/kept-bm25/v1/stem_numbers.npy"
    path.chmod(0o644)
    numbers = np.load(path)
    np.save(path, numbers.astype(np.float64))
    with pytest.raises(InputError, match="Make it again"):
        Bm25Ranking(blocks, "english")
