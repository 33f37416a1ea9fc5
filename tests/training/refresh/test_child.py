"""The refresher as a child process: watched, restarted, given up, ended. Most tests run another program in its place."""

from __future__ import annotations

import errno
import os
import signal
import sys
from pathlib import Path

import pytest
import torch

from realmctl.errors import InputError, NotFiniteError, QualityError, ResourceError
from realmctl.execution.signals import deferred
from realmctl.training.refresh import child
from realmctl.training.refresh.child import ChildRefresher
from realmctl.training.refresh.index_in_use import IndexInUse
from tests.fixtures.refresh import deliver
from tests.fixtures.waiting import wait_until


def run_instead(monkeypatch, program):
    """Children run `program`, and nothing waits long for them."""
    monkeypatch.setattr(child, "BACK_OFF", 0.01)
    monkeypatch.setattr(child, "STOP_SECONDS", 0.5)
    monkeypatch.setattr(ChildRefresher, "command", lambda self: [sys.executable, "-S", "-c", program])


def running(monkeypatch, live, program):
    """A refresher that runs `program`."""
    run_instead(monkeypatch, program)
    return ChildRefresher(live, "cpu")


def watch(refresher, until):
    """Watch, as the training loop does at every step, until something is so."""
    wait_until(lambda: until() or refresher.watch(True))


class Clock:
    """The trainer's clock, which goes on when a test says so: a busy machine makes no refresher too slow."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(child, "time", Clock())
    return child.time


def watch_until_another(refresher, clock):
    """Watch while more time passes between two looks than a refresher may spend without progress."""
    first = refresher.process

    def another():
        clock.now += 1.1 * child.STALE_SECONDS
        refresher.watch(True)
        return refresher.process is not first

    wait_until(another)
    return first


IDLE = "import sys; sys.stdin.read()"


def beating(live, value):
    """A program whose heartbeat thread beats 20 times a second; `value` is the expression of `blocks_done`."""
    return f"""
import json, os, sys, threading, time
def beat():
    count = 0
    while True:
        count += 1
        beat = dict(pid=os.getpid(), token={live.request().token!r}, state="embedding", step=2, blocks_done={value}, count=count)
        open({str(live.path / "writing")!r}, "w").write(json.dumps(beat))
        os.replace({str(live.path / "writing")!r}, {str(live.path / "refresher.json")!r})
        time.sleep(0.05)
threading.Thread(target=beat, daemon=True).start()
{IDLE}
"""


def test_a_killed_refresher_is_started_again(live, monkeypatch, capsys):
    refresher = running(monkeypatch, live, beating(live, "count"))
    refresher.watch(True)
    first = refresher.process.pid
    os.kill(first, signal.SIGKILL)
    watch(refresher, lambda: refresher.process is not None and refresher.process.pid != first)
    assert refresher.failures == 1
    assert "killed by signal 9; starting it again (1 of 3)" in capsys.readouterr().err
    refresher.stop()


def test_a_stopped_refresher_is_started_again(live, monkeypatch, capsys, clock):
    refresher = running(monkeypatch, live, beating(live, "count"))
    refresher.watch(True)
    wait_until(live.last_beat)
    os.kill(refresher.process.pid, signal.SIGSTOP)
    assert watch_until_another(refresher, clock).poll() == -signal.SIGKILL
    assert "made no progress for 120 s" in capsys.readouterr().err
    clock.now += 1
    watch(refresher, lambda: refresher.process is not None)
    refresher.stop()


def test_a_refresher_that_beats_without_progress_is_started_again(live, monkeypatch, capsys, clock):
    """A thread beats for a stuck worker, so a rising count is no sign of work."""
    refresher = running(monkeypatch, live, beating(live, "7"))
    refresher.watch(True)
    wait_until(live.last_beat)
    refresher.watch(True)
    seen = live.last_beat()["count"]
    wait_until(lambda: live.last_beat().get("count") != seen)
    for _ in range(2):
        clock.now += 1.1 * child.STALE_SECONDS
        refresher.watch(True)
    assert "made no progress for 120 s" in capsys.readouterr().err
    refresher.stop()


def test_a_refresher_that_cannot_be_started_is_tried_again(live, monkeypatch, capsys):
    """The system may have no process or no memory left for a moment."""

    def none_left(*arguments, **options):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    refresher = running(monkeypatch, live, IDLE)
    with monkeypatch.context() as patch:
        patch.setattr(child.subprocess, "Popen", none_left)
        refresher.watch(True)
    assert "starting it again (1 of 3)" in capsys.readouterr().err
    watch(refresher, lambda: refresher.process is not None)
    refresher.stop()
    monkeypatch.setattr(child.subprocess, "Popen", none_left)
    with pytest.raises(ResourceError, match=os.strerror(errno.EAGAIN)):
        watch(refresher, lambda: False)
    assert refresher.failures == child.RESTARTS + 1


@pytest.mark.parametrize("had_work", [False, True], ids=["a step longer than the limit", "both were stopped for hours"])
def test_a_trainer_that_looks_after_a_long_time_gives_the_refresher_time(live, monkeypatch, clock, had_work):
    """It does not know how much of the time the refresher had, with this snapshot."""
    refresher = running(monkeypatch, live, beating(live, "7"))
    refresher.watch(False)
    wait_until(live.last_beat)
    refresher.watch(False)
    refresher.watch(had_work)
    first = refresher.process
    clock.now += 100 * child.STALE_SECONDS
    refresher.watch(True)
    assert refresher.process is first and first.poll() is None and refresher.failures == 0
    refresher.stop()


@pytest.mark.parametrize(("blocks_done", "has_work"), [("count", True), ("7", False)])
def test_a_refresher_that_makes_progress_or_has_no_work_is_left_alone(live, monkeypatch, blocks_done, has_work, clock):
    refresher = running(monkeypatch, live, beating(live, blocks_done))
    refresher.watch(has_work)
    first = refresher.process
    for _ in range(4):
        seen = live.last_beat().get("count")
        wait_until(lambda seen=seen: live.last_beat().get("count") != seen)
        refresher.watch(has_work)
        clock.now += 0.9 * child.STALE_SECONDS
    assert refresher.process is first and refresher.failures == 0
    refresher.stop()


def test_a_beat_with_the_token_of_another_run_is_no_progress(live, monkeypatch, capsys, clock):
    refresher = running(monkeypatch, live, beating(live, "count").replace(live.request().token, "another"))
    refresher.watch(True)
    wait_until(live.last_beat)
    watch_until_another(refresher, clock)
    assert "made no progress" in capsys.readouterr().err
    refresher.stop()


def test_a_stopped_refresher_does_not_delay_the_end_of_the_trainer(live, monkeypatch):
    """It obeys neither the end of its input nor SIGTERM."""
    refresher = running(monkeypatch, live, IDLE)
    refresher.watch(False)
    process = refresher.process
    os.kill(process.pid, signal.SIGSTOP)
    refresher.stop()
    ended = process.poll()
    process.kill()
    assert ended == -signal.SIGKILL


def test_a_refresher_that_a_signal_to_the_group_ended_is_not_started_again(live, monkeypatch):
    refresher = running(monkeypatch, live, IDLE)
    refresher.watch(False)
    with deferred():
        os.kill(os.getpid(), signal.SIGTERM)
        refresher.process.kill()
        refresher.process.wait()
        refresher.watch(True)
    assert refresher.failures == 0
    refresher.stop()


def test_what_a_killed_refresher_had_not_delivered_is_removed(live, monkeypatch):
    refresher = running(monkeypatch, live, IDLE)
    refresher.watch(False)
    token = live.request().token
    ours = refresher.process.pid
    own, another, longer = (
        Path(f"{live.unfinished(2, token, number)}.partial") for number in (ours, ours + 1, ours * 10)
    )
    for path in (own, another, longer):
        path.mkdir()
    refresher.process.kill()
    watch(refresher, lambda: refresher.failures == 1)
    assert not own.exists() and another.exists() and longer.exists()
    refresher.stop()


@pytest.mark.parametrize(
    ("code", "kind"), [(6, QualityError), (3, InputError), (1, ResourceError), (75, ResourceError)]
)
def test_after_three_restarts_training_stops_with_what_the_refresher_said(live, monkeypatch, code, kind):
    refresher = running(monkeypatch, live, f"import sys; print('recall of 41 %'); sys.exit({code})")
    with pytest.raises(kind, match=r"4 times in a row.*recall of 41 %") as error:
        watch(refresher, lambda: False)
    assert error.value.exit_code == kind.exit_code
    assert "\n" not in str(error.value)
    refresher.stop()


def test_a_snapshot_that_overflows_is_told_at_once(live, monkeypatch):
    """The same snapshot would overflow again. The error has its step, because training went on meanwhile."""
    refresher = running(monkeypatch, live, "import sys; sys.exit(3)")
    live.beat({"token": live.request().token, "state": "diverged", "step": 2, "error": "a vector is not finite"})
    with pytest.raises(NotFiniteError, match="a vector is not finite") as error:
        watch(refresher, lambda: False)
    assert error.value.step == 2 and refresher.failures == 1
    refresher.stop()


def test_success_forgives_failures(started, live, retriever, monkeypatch):
    run_instead(monkeypatch, IDLE)
    trainer = started("background", refresh_device="cpu")
    trainer.begin(0, 0)
    trainer.child.failures = 3
    trainer.offer(2, 0, retriever)
    deliver(live, 2)
    assert trainer.take(2, 0)[0] == 2 and trainer.child.failures == 0
    trainer.close()


@pytest.fixture
def seven_threads():
    """What this process computes with; one thread again afterwards."""
    torch.set_num_threads(7)
    yield 7
    torch.set_num_threads(1)


def test_threads_are_divided_while_the_refresher_works(chain, started, live, retriever, monkeypatch, seven_threads):
    seen = live.path / "seen"
    run_instead(
        monkeypatch,
        f"import os, pathlib; pathlib.Path({str(seen)!r}).write_text(os.environ['OMP_NUM_THREADS']); {IDLE}",
    )
    trainer = started("background", refresh_device="cpu")
    current = IndexInUse(chain.index, "cpu", trainer)

    def threads_of_step(step):
        current.renew(step, retriever)
        return torch.get_num_threads()

    assert [threads_of_step(step) for step in range(4)] == [7, 7, 4, 4]
    deliver(live, 2)
    assert threads_of_step(3) == 7
    assert threads_of_step(4) == 4
    watch(trainer.child, seen.exists)
    trainer.close()
    assert seen.read_text() == "3" and torch.get_num_threads() == 7


def test_in_lockstep_the_threads_are_divided_all_the_time(chain, started, retriever, monkeypatch, seven_threads):
    """Their number can change the last bits of a sum."""
    run_instead(monkeypatch, IDLE)
    trainer = started("lockstep", refresh_device="cpu")
    trainer.begin(0, 0)
    assert torch.get_num_threads() == 4
    trainer.close()
    assert torch.get_num_threads() == 7


def test_a_lone_thread_is_left_to_both(live, monkeypatch):
    refresher = running(monkeypatch, live, f"import os; print(os.environ['OMP_NUM_THREADS'], flush=True); {IDLE}")
    refresher.watch(True)
    watch(refresher, lambda: "1" in (live.path / "refresher.log").read_text())
    assert torch.get_num_threads() == 1
    refresher.stop()


def test_close_ends_the_child_even_when_it_is_deaf(live, monkeypatch):
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    )
    refresher = running(monkeypatch, live, deaf)
    refresher.watch(True)
    process = refresher.process
    wait_until(lambda: "up" in (live.path / "refresher.log").read_text())
    refresher.stop()
    assert process.poll() == -signal.SIGKILL
    refresher.stop()  # twice is no error
