"""The shared folder: what counts as there, what is kept, and what a damaged message costs."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from realmctl.artifacts.hashing import read_sealed
from realmctl.errors import InputError
from realmctl.training.refresh.index_maker import request_of
from realmctl.training.refresh.protocol import HELD, REQUEST, RefreshFolder, StepFolder
from tests.fixtures.chain import pretrain


def with_steps(path, *steps):
    folder = StepFolder(path)
    for step in steps:
        folder.at(step).mkdir()
        (folder.at(step) / "manifest.json").touch()
    return folder


def test_prune_keeps_what_is_needed_and_touches_nothing_unfinished(tmp_path):
    folder = with_steps(tmp_path, 1, 2, 3, 4, 5)
    (tmp_path / "step-00000009.partial").mkdir()
    folder.prune({2})
    assert folder.steps() == [2, 4, 5] and folder.newest() == 5
    assert (tmp_path / "step-00000009.partial").is_dir()


def test_a_live_folder_that_goes_away_while_it_is_listed_holds_nothing(tmp_path, monkeypatch):
    plain = type(tmp_path).iterdir

    def too_late(folder):
        folder.rmdir()
        return plain(folder)

    monkeypatch.setattr(type(tmp_path), "iterdir", too_late)
    assert StepFolder(tmp_path).steps() == [] and StepFolder(tmp_path).newest() == 0


def test_every_start_of_a_trainer_has_a_token_of_its_own(chain, live):
    before = live.request()
    live.place(request_of(pretrain(chain)))
    after = live.request()
    assert before.token != after.token and replace(after, token=before.token) == before
    assert not live.has_token(before.token) and live.has_token(after.token)


def test_a_new_run_removes_what_interrupted_writers_left(chain, live):
    live.unfinished(2, live.request().token, 17).with_suffix(".partial").mkdir()
    live.indexes.at(4).mkdir()  # without a manifest
    live.place(request_of(pretrain(chain)))
    assert list(live.indexes.path.iterdir()) == []
    assert (live.path / "quarantine/step-00000004-1").is_dir()


def test_a_folder_that_is_no_live_folder(tmp_path):
    with pytest.raises(InputError, match=REQUEST):
        RefreshFolder(tmp_path).request()


def test_a_damaged_request_is_not_followed_and_counts_as_unchanged(live):
    token, path = live.request().token, live.path / REQUEST
    path.write_text(path.read_text().replace("float32", "float16"))
    with pytest.raises(InputError, match=REQUEST):
        live.request()
    assert live.has_token(token)


def test_what_is_held_is_unknown_when_the_file_is_damaged(live):
    assert live.held() == set()
    live.hold([4, 2, 4])
    path = live.path / HELD
    assert read_sealed(path) == {"steps": [2, 4]} and live.held() == {2, 4}
    path.write_text(path.read_text().replace("[2, 4]", "[3, 4]"))
    assert live.held() is None


@pytest.mark.parametrize("text", ["", "{", "[1]"])
def test_a_damaged_heartbeat_says_nothing(live, text):
    (live.path / "refresher.json").write_text(text)
    assert live.last_beat() == {}


def test_an_index_of_another_retriever_is_not_there(chain, live):
    """It is not damaged either, so it stays where it is."""
    shutil.copytree(chain.index.path, live.indexes.at(2))
    assert live.indexes.whole(2, chain.index.lineage["retriever"]) == live.indexes.whole(2) is not None
    assert live.indexes.whole(2, "0" * 64) is None and live.indexes.has(2)
