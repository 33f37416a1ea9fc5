"""The refresher: what it makes, what its heartbeat says, and how it keeps out of the way of a newer run of its trainer."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest

from realmctl.artifacts import open_artifact, verify
from realmctl.errors import AccessError, InputError, NotFiniteError, QualityError, ResourceError
from realmctl.training.refresh import protocol, refresher
from realmctl.training.refresh.index_maker import request_of
from realmctl.training.refresh.protocol import StepFolder
from realmctl.training.refresh.refresher import Heartbeat, Refresher, Superseded
from tests.fixtures.chain import pretrain
from tests.fixtures.refresh import damage, nudge
from tests.fixtures.waiting import PATIENCE_SECONDS


@pytest.fixture
def trainer(started):
    found = started("background")
    found.begin(0, 0)
    return found


@pytest.fixture
def new_run(chain, live):
    """Places the request of a trainer that was started again."""
    return lambda: live.place(request_of(pretrain(chain)))


def test_it_takes_the_newest_snapshot_and_skips_those_it_missed(trainer, live, retriever):
    ours = Refresher(live, "cpu")
    assert not ours.refresh_newest()
    for step in (2, 4, 6):
        trainer.offer(step, 0, retriever)
        nudge(retriever)
    assert ours.refresh_newest()
    assert live.indexes.steps() == [6]
    assert not ours.refresh_newest()  # it has its index
    step, index = trainer.take(6, 0)
    assert step == 6 and index.lineage["retriever"] == open_artifact(live.snapshots.at(6)).content


def test_nothing_is_pruned_while_it_is_not_known_what_is_held(trainer, live, retriever):
    ours = Refresher(live, "cpu")
    (live.path / "held.json").write_text("damaged")
    for step in (2, 4, 6, 8):
        trainer.offer(step, 0, retriever)
        assert ours.refresh_newest()
    assert live.indexes.steps() == [2, 4, 6, 8]
    live.hold([2])
    trainer.offer(10, 0, retriever)
    assert ours.refresh_newest() and live.indexes.steps() == [2, 8, 10]


def test_a_snapshot_that_is_damaged_before_it_is_embedded_is_replaced_by_a_fresh_one(trainer, live, retriever, capsys):
    trainer.offer(2, 0, retriever)
    damage(next(live.snapshots.at(2).rglob("*.safetensors")))
    ours = Refresher(live, "cpu")
    assert not ours.refresh_newest()
    assert "is damaged" in capsys.readouterr().err and live.snapshots.steps() == []
    trainer.offer(3, 0, retriever)  # no snapshot is due at step 3, but the refresher has none to work on
    assert live.snapshots.steps() == [3] and ours.refresh_newest()
    assert trainer.take(3, 0)[0] == 3


def test_a_late_refresher_does_not_deliver(trainer, live, retriever, new_run):
    """A stopped refresher outlived its killed trainer and shared `step-X.partial` with the next one."""
    ours = Refresher(live, "cpu")
    new_run()
    trainer.offer(2, 0, retriever)
    with pytest.raises(Superseded):
        ours.refresh_newest()
    assert list(live.indexes.path.iterdir()) == []
    ours.heart.beat()
    assert ours.heart.superseded and not (live.path / "refresher.json").exists()


def test_a_refresher_that_is_overtaken_in_the_middle_stops_at_the_next_blocks(trainer, live, retriever, new_run):
    trainer.offer(2, 0, retriever)
    ours = Refresher(live, "cpu")
    plain, ours.heart.tick = ours.heart.tick, lambda blocks: (new_run(), ours.heart.beat(), plain(blocks))
    with pytest.raises(Superseded):
        ours.refresh_newest()
    assert list(live.indexes.path.iterdir()) == []


def test_a_refresher_that_is_overtaken_after_the_last_blocks_does_not_deliver(
    trainer, live, retriever, new_run, monkeypatch
):
    """The new run has placed its request and not yet tidied the folder."""
    trainer.offer(2, 0, retriever)
    ours = Refresher(live, "cpu")
    make = ours.maker.make
    monkeypatch.setattr(StepFolder, "tidy", lambda folder: None)
    ours.maker.make = lambda *arguments: (make(*arguments), new_run())[0]
    with pytest.raises(Superseded):
        ours.refresh_newest()
    assert live.indexes.steps() == []


def test_the_index_of_an_earlier_attempt_at_a_step_is_made_again(trainer, live, retriever):
    """Here it is the index of another step, under the name of the newest snapshot."""
    ours = Refresher(live, "cpu")
    for step in (2, 4):
        trainer.offer(step, 0, retriever)
        nudge(retriever)
        assert ours.refresh_newest() and not ours.refresh_newest()
    live.snapshots.remove(4)
    live.indexes.remove(2)
    live.indexes.at(4).rename(live.indexes.at(2))
    assert ours.refresh_newest()
    assert open_artifact(live.indexes.at(2)).lineage["retriever"] == open_artifact(live.snapshots.at(2)).content


def test_two_refreshers_at_once_do_not_share_a_file(trainer, live, retriever):
    trainer.offer(2, 0, retriever)
    one, other = Refresher(live, "cpu"), Refresher(live, "cpu")
    one.process, other.process = 100, 1001
    plain, names = one.heart.tick, []

    def tick(blocks):
        if not names:
            names.append({path.name for path in live.indexes.path.iterdir()})
            assert other.refresh_newest()  # the other one starts and delivers meanwhile
        plain(blocks)

    one.heart.tick = tick
    one.refresh_newest()
    assert [name.endswith("-100.partial") for name in names[0]] == [True]
    assert [path.name for path in live.indexes.path.iterdir()] == ["step-00000002"]
    verify(open_artifact(live.indexes.at(2)))


def test_a_refresher_started_by_hand_serves_the_next_run_of_its_trainer(live, new_run, monkeypatch):
    served = []

    def serve(ours, child):
        served.append((ours.request.token, child))
        if len(served) == 1:
            new_run()
            raise Superseded

    monkeypatch.setattr(Refresher, "serve", serve)
    monkeypatch.delenv(refresher.TRAINER, raising=False)
    refresher.serve(live.path, "cpu")
    assert [child for _, child in served] == [False, False] and served[0][0] != served[1][0]


def test_a_child_of_a_trainer_leaves_when_another_trainer_was_started(live, monkeypatch):
    parents, served, ignored = [], [], []

    def serve(ours, child):
        served.append(child)
        raise Superseded

    monkeypatch.setattr(Refresher, "serve", serve)
    monkeypatch.setattr(refresher, "_exit_at_end_of_input", lambda: None)
    monkeypatch.setattr(refresher, "die_with_parent", parents.append)
    monkeypatch.setattr(signal, "signal", lambda number, handler: ignored.append(number))
    monkeypatch.setenv(refresher.TRAINER, "17")
    refresher.serve(live.path, "cpu")
    assert (parents, served) == ([17], [True])
    assert {signal.SIGINT, signal.SIGHUP, signal.SIGUSR1} <= set(ignored) and signal.SIGTERM not in ignored


@pytest.mark.parametrize("trainer", ["17", None])
def test_only_a_child_leaves_at_the_end_of_its_input(live, monkeypatch, trainer):
    """That of a refresher started by hand, as by `ssh -n`, may end at once."""
    watched = threading.Event()
    monkeypatch.setattr(Refresher, "serve", lambda ours, child: watched.wait(PATIENCE_SECONDS if trainer else 0.2))
    monkeypatch.setattr(refresher, "_exit_at_end_of_input", watched.set)
    monkeypatch.setattr(refresher, "die_with_parent", lambda parent: None)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.delenv(refresher.TRAINER, raising=False)
    if trainer:
        monkeypatch.setenv(refresher.TRAINER, trainer)
    refresher.serve(live.path, "cpu")
    assert watched.is_set() == bool(trainer)


@pytest.mark.parametrize("error", [ResourceError("no handles"), AccessError("no access"), InputError("damaged")])
def test_a_request_or_a_list_that_cannot_be_read_ends_no_heartbeat_and_prunes_nothing(live, monkeypatch, error):
    def fails(path):
        raise error

    monkeypatch.setattr(protocol, "read_sealed", fails)
    heart = Heartbeat(live, "a token")
    heart.beat()
    assert not heart.superseded and live.last_beat()["count"] == 1 and live.held() is None


def test_serving_ends_with_the_request(trainer, live, retriever, new_run, monkeypatch):
    """The loop itself, in a thread: it makes the index of a snapshot, and stops when a new trainer starts."""
    monkeypatch.setattr(refresher, "POLL_SECONDS", 0.01)
    ours, ended = Refresher(live, "cpu"), []

    def serve():
        try:
            ours.serve(child=False)
        except Superseded:
            ended.append(True)

    trainer.offer(2, 0, retriever)
    thread = threading.Thread(target=serve)
    thread.start()
    while not live.indexes.steps():
        thread.join(0.01)
    new_run()
    thread.join(10)
    assert ended == [True]


def test_two_beats_at_once_do_not_end_the_refresher(live):
    heart = Heartbeat(live, live.request().token)
    threads = [threading.Thread(target=lambda: [heart.beat() for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    beat = json.loads((live.path / "refresher.json").read_text())
    assert beat["count"] == 800 and beat["pid"] == os.getpid()


@pytest.mark.parametrize(("kind", "state"), [(QualityError, "failed"), (NotFiniteError, "diverged")])
def test_a_failed_refresh_is_told_by_the_heartbeat(trainer, live, retriever, monkeypatch, kind, state):
    trainer.offer(2, 0, retriever)
    ours = Refresher(live, "cpu")

    def make(*arguments):
        raise kind("finds nothing")

    monkeypatch.setattr(ours.maker, "make", make)
    with pytest.raises(kind):
        ours.refresh_newest()
    beat = live.last_beat()
    assert (beat["state"], beat["step"], beat["error"]) == (state, 2, "finds nothing")


def test_a_snapshot_that_is_pruned_in_the_middle_is_no_failure(trainer, live, retriever, monkeypatch):
    trainer.offer(2, 0, retriever)
    ours = Refresher(live, "cpu")

    def make(*arguments):
        live.snapshots.remove(2)
        raise FileNotFoundError("a tower")

    monkeypatch.setattr(ours.maker, "make", make)
    assert not ours.refresh_newest()
    assert live.last_beat()["state"] == "waiting" and live.last_beat()["error"] is None


def test_progress_is_told_by_blocks_and_then_by_processor_time(live):
    heart = Heartbeat(live, live.request().token, blocks=5)
    beats = []
    busy = int(time.process_time())
    heart.set(state="embedding", step=2, blocks_done=0)
    for blocks in (3, 2):
        heart.tick(blocks)
        heart.beat()
        beats.append(live.last_beat())
    assert [(beat["state"], beat["blocks_done"]) for beat in beats] == [("embedding", 3), ("building", 5)]
    assert beats[0]["cpu_seconds"] == 0 and busy <= beats[1]["cpu_seconds"] <= time.process_time()
