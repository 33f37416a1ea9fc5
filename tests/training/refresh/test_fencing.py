"""Two runs of a trainer on one folder: the refresher of the first run must not disturb the second."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace

import pytest

from realmctl.artifacts import open_artifact, verify
from realmctl.errors import InputError
from realmctl.training.refresh import refresher
from realmctl.training.refresh.background import ExternalRefresh
from realmctl.training.refresh.index_maker import IndexMaker, take_snapshot
from realmctl.training.refresh.refresh_folder import HELD, REQUEST, RefreshRequest, at_step, prune, steps_in
from realmctl.training.refresh.refresher import Heartbeat, Superseded
from realmctl.training.scratch_files import read_sealed


def new_run(live):
    """Place the request of a trainer that was started again."""
    values = {**live.request().__dict__}
    values.pop("token")
    live.place(RefreshRequest(**values))


def served_by(live):
    """What a refresher process has from its start: the request of that moment."""
    request = live.request()
    return IndexMaker(request, "cpu"), Heartbeat(live, request.token)


def test_every_start_of_a_trainer_has_a_token_of_its_own(live):
    before = live.request()
    new_run(live)
    after = live.request()
    assert before.token != after.token and replace(after, token=before.token) == before
    assert not live.has_token(before.token) and live.has_token(after.token)


def test_a_late_refresher_does_not_deliver(shared, live, retriever):
    """A stopped refresher outlived its killed trainer and shared `step-X.partial` with the next one."""
    maker, heart = served_by(live)
    new_run(live)
    take_snapshot(live, shared[1], 2, retriever, shared[2])
    with pytest.raises(Superseded):
        refresher._refreshed(live, maker, 2, heart)
    assert list(live.indexes.iterdir()) == []
    heart.beat()
    assert heart.superseded and not (live.path / "refresher.json").exists()


def test_a_refresher_that_is_overtaken_in_the_middle_stops_at_the_next_blocks(shared, live, retriever):
    maker, heart = served_by(live)
    take_snapshot(live, shared[1], 2, retriever, shared[2])
    plain, heart.tick = heart.tick, lambda blocks: (new_run(live), heart.beat(), plain(blocks))
    with pytest.raises(Superseded):
        refresher._refreshed(live, maker, 2, heart)
    assert list(live.indexes.iterdir()) == []


def test_two_refreshers_at_once_do_not_share_a_file(shared, live, retriever, monkeypatch):
    take_snapshot(live, shared[1], 2, retriever, shared[2])
    (one, heart), (other, other_heart) = served_by(live), served_by(live)
    monkeypatch.setattr(os, "getpid", iter(range(10**6, 2 * 10**6)).__next__)
    names = []

    def tick(blocks):
        if not names:
            names.append({path.name for path in live.indexes.iterdir()})
            refresher._refresh(live, other, 2, other_heart)  # the other one starts and delivers meanwhile

    heart.tick = tick
    refresher._refresh(live, one, 2, heart)
    assert [name.endswith("-1000000.partial") for name in names[0]] == [True]
    assert [path.name for path in live.indexes.iterdir()] == ["step-00000002"]
    verify(open_artifact(at_step(live.indexes, 2)))


def test_a_refresher_started_by_hand_serves_the_next_run_of_its_trainer(live, monkeypatch, capsys):
    served = []

    def serve_request(folder, device, executor, child):
        served.append((folder.request().token, child))
        if len(served) == 1:
            new_run(live)
            raise Superseded

    monkeypatch.setattr(refresher, "_serve_request", serve_request)
    monkeypatch.delenv(refresher.TRAINER, raising=False)
    refresher.serve(live.path, "cpu")
    assert [child for _, child in served] == [False, False] and served[0][0] != served[1][0]
    assert "serves its new run" in capsys.readouterr().err


def test_a_child_of_a_trainer_leaves_when_another_trainer_was_started(live, monkeypatch):
    parents, served, ignored = [], [], []

    def serve_request(folder, device, executor, child):
        served.append(child)
        raise Superseded

    monkeypatch.setattr(refresher, "_serve_request", serve_request)
    monkeypatch.setattr(refresher, "die_with_parent", parents.append)
    monkeypatch.setattr(signal, "signal", lambda number, handler: ignored.append(number))
    monkeypatch.setenv(refresher.TRAINER, "17")
    refresher.serve(live.path, "cpu")
    assert (parents, served) == ([17], [True])
    assert {signal.SIGINT, signal.SIGHUP, signal.SIGUSR1} <= set(ignored) and signal.SIGTERM not in ignored


def test_serving_ends_with_the_request(shared, live, retriever, monkeypatch):
    """The loop itself, in a thread: it makes the index of a snapshot, and stops when a new trainer starts."""
    monkeypatch.setattr(refresher, "POLL_SECONDS", 0.01)
    ended = []

    def serve():
        try:
            refresher._serve_request(live, "cpu", "local", child=False)
        except Superseded:
            ended.append(True)

    take_snapshot(live, shared[1], 2, retriever, shared[2])
    thread = threading.Thread(target=serve)
    thread.start()
    while not steps_in(live.indexes):
        thread.join(0.01)
    new_run(live)
    thread.join(10)
    assert ended == [True]


def test_a_new_run_removes_what_interrupted_writers_left(live):
    unfinished = live.indexes / "step-00000002.0badc0de-17.partial"
    unfinished.mkdir()
    torn = live.indexes / "step-00000004"
    torn.mkdir()
    new_run(live)
    assert list(live.indexes.iterdir()) == []
    assert (live.path / "quarantine/step-00000004-1").is_dir()


def test_a_snapshot_that_is_damaged_before_it_is_embedded_is_replaced_by_a_fresh_one(shared, live, retriever, capsys):
    trainer = ExternalRefresh(*shared, 10)
    trainer.begin(0)
    trainer.offer(2, retriever)
    path = next(at_step(live.snapshots, 2).rglob("*.safetensors"))
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    maker, heart = served_by(live)
    assert not refresher._refreshed(live, maker, 2, heart)
    assert "is damaged" in capsys.readouterr().err and steps_in(live.snapshots) == []
    trainer.offer(3, retriever)  # no snapshot is due at step 3, but the refresher has none to work on
    assert steps_in(live.snapshots) == [3]
    assert refresher._refreshed(live, maker, 3, heart)
    assert trainer.newest()[0] == 3 and not trainer.pending


def test_a_damaged_request_is_not_followed(live):
    path = live.path / REQUEST
    path.write_text(path.read_text().replace("float32", "float16"))
    with pytest.raises(InputError, match="not a refresh request"):
        live.request()


def test_nothing_is_pruned_while_it_is_not_known_what_is_held(live):
    live.hold([2])
    path = live.path / HELD
    assert read_sealed(path) == [2]
    path.write_text(path.read_text().replace("[2]", "[3]"))
    assert live.held() is None and live.held_snapshots() is None
    for step in (2, 4, 6, 8):
        at_step(live.indexes, step).mkdir()
        (at_step(live.indexes, step) / "manifest.json").touch()
    prune(live.indexes, 1, live.held())
    assert steps_in(live.indexes) == [2, 4, 6, 8]
