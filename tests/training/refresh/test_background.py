"""The refresher as a child process: watched, restarted, given up, ended. Most tests run another program in its place."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

import pytest
import torch

from realmctl.errors import InputError, QualityError, ResourceError
from realmctl.execution.signals import deferred
from realmctl.training.refresh import refresher, refresher_process
from realmctl.training.refresh.background import BackgroundRefresh
from realmctl.training.refresh.index_maker import IndexMaker, take_snapshot
from realmctl.training.refresh.refresh_folder import RefreshFolder, read_heartbeat, writer_suffix
from realmctl.training.refresh.refresher_process import RefresherProcess
from realmctl.training.refresh.threads import DividedThreads
from tests.fixtures.refresh import deliver


def child(monkeypatch, live, program):
    """A supervised process that runs `program`; it never waits long."""
    monkeypatch.setattr(refresher_process, "STALE_SECONDS", 2.0)
    monkeypatch.setattr(refresher_process, "BACK_OFF", 0.01)
    monkeypatch.setattr(refresher_process, "STOP_SECONDS", 3.0)
    monkeypatch.setattr(RefresherProcess, "_command", lambda self: [sys.executable, "-S", "-c", program])
    return RefresherProcess(live, "cpu")


def watch(process, until, seconds=60.0, has_work=True):
    """Supervise, as the training loop does at every step, until something is so."""
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "it never came to be"
        process.watch(has_work)
        time.sleep(0.01)


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
    process = child(monkeypatch, live, beating(live, "count"))
    process.watch(True)
    first = process.child.pid
    os.kill(first, signal.SIGKILL)
    watch(process, lambda: process.child is not None and process.child.pid != first)
    assert process.failures == 1
    assert "killed by signal 9; starting it again (1 of 3)" in capsys.readouterr().err
    process.stop()


def test_a_stopped_refresher_is_started_again(live, monkeypatch, capsys):
    process = child(monkeypatch, live, beating(live, "count"))
    process.watch(True)
    first = process.child
    watch(process, lambda: (live.path / "refresher.json").exists())
    os.kill(first.pid, signal.SIGSTOP)
    watch(process, lambda: process.child is not first)
    assert first.poll() == -signal.SIGKILL
    assert "made no progress for 2 s" in capsys.readouterr().err
    watch(process, lambda: process.child is not None)
    process.stop()


def test_a_refresher_that_beats_without_progress_is_started_again(live, monkeypatch, capsys):
    """A thread beats for a stuck worker, so a rising count is no sign of work."""
    process = child(monkeypatch, live, beating(live, "7"))
    process.watch(True)
    first = process.child
    watch(process, lambda: process.child is not first)
    assert "made no progress for 2 s" in capsys.readouterr().err
    process.stop()


@pytest.mark.parametrize(("blocks_done", "has_work"), [("count", True), ("7", False)])
def test_a_refresher_that_makes_progress_or_has_no_work_is_left_alone(live, monkeypatch, blocks_done, has_work):
    process = child(monkeypatch, live, beating(live, blocks_done))
    process.watch(has_work)
    first, end = process.child, time.monotonic() + 3.5
    watch(process, lambda: time.monotonic() > end, has_work=has_work)
    assert process.child is first and process.failures == 0
    process.stop()


def test_a_beat_with_the_token_of_another_run_is_no_progress(live, monkeypatch, capsys):
    process = child(monkeypatch, live, beating(live, "count").replace(live.request().token, "another"))
    process.watch(True)
    first = process.child
    watch(process, lambda: process.child is not first)
    assert "made no progress" in capsys.readouterr().err
    process.stop()


def test_a_stopped_refresher_does_not_delay_the_end_of_the_trainer(live, monkeypatch):
    """SIGTERM with a stopped refresher took 22 s."""
    monkeypatch.setattr(RefresherProcess, "_command", lambda self: [sys.executable, "-S", "-c", IDLE])
    process = RefresherProcess(live, "cpu")
    process.watch(False)
    running = process.child
    os.kill(running.pid, signal.SIGSTOP)
    start = time.monotonic()
    process.stop()
    assert time.monotonic() - start < 4 and running.poll() == -signal.SIGKILL


def test_a_refresher_that_a_signal_to_the_group_ended_is_not_started_again(live, monkeypatch):
    process = child(monkeypatch, live, IDLE)
    process.watch(False)
    with deferred():
        os.kill(os.getpid(), signal.SIGTERM)
        process.child.kill()
        process.child.wait()
        process.watch(True)
    assert process.failures == 0
    process.stop()


def test_what_a_killed_refresher_had_not_delivered_is_removed(live, monkeypatch):
    process = child(monkeypatch, live, IDLE)
    process.watch(False)
    token = live.request().token
    own = live.indexes / f"step-00000002{writer_suffix(token, process.child.pid)}.partial"
    another = live.indexes / f"step-00000002{writer_suffix(token, process.child.pid + 1)}.partial"
    own.mkdir()
    another.mkdir()
    process.child.kill()
    watch(process, lambda: process.failures == 1)
    assert not own.exists() and another.exists()
    process.stop()


@pytest.mark.parametrize(
    ("code", "kind"), [(6, QualityError), (3, InputError), (1, ResourceError), (75, ResourceError)]
)
def test_after_three_restarts_training_stops_with_what_the_refresher_said(live, monkeypatch, code, kind):
    process = child(monkeypatch, live, f"import sys; print('recall of 41 %'); sys.exit({code})")
    with pytest.raises(kind, match=r"4 times in a row \(it ended with exit code .*recall of 41 %") as error:
        watch(process, lambda: False)
    assert error.value.exit_code == kind.exit_code
    assert "\n" not in str(error.value)
    process.stop()


def test_success_forgives_failures(shared, live, retriever, monkeypatch):
    child(monkeypatch, live, IDLE)
    ours = BackgroundRefresh(*shared, 10, "cpu")
    ours.begin(0)
    ours.process.failures = 3
    ours.offer(2, retriever)
    deliver(live, 2)
    assert ours.newest()[0] == 2 and ours.process.failures == 0
    ours.close()


@pytest.fixture
def seven_threads():
    """What this process computes with; one thread again afterwards."""
    torch.set_num_threads(7)
    yield 7
    torch.set_num_threads(1)


def test_threads_are_divided_while_the_refresher_works(shared, live, retriever, monkeypatch, seven_threads):
    child(
        monkeypatch,
        live,
        f"import os, pathlib; pathlib.Path({str(live.path / 'seen')!r}).write_text(os.environ['OMP_NUM_THREADS']); {IDLE}",
    )
    ours = BackgroundRefresh(*shared, 10, "cpu")

    def threads_of_step(step):
        ours.offer(step, retriever)
        ours.newest()
        return torch.get_num_threads()

    ours.begin(0)
    assert [threads_of_step(0), threads_of_step(1)] == [7, 7]
    assert [threads_of_step(2), threads_of_step(3)] == [4, 4]
    deliver(live, 2)
    assert threads_of_step(3) == 7
    assert threads_of_step(4) == 4
    watch(ours.process, (live.path / "seen").exists)
    ours.close()
    assert (live.path / "seen").read_text() == "3"
    assert torch.get_num_threads() == 7


def test_a_lone_thread_is_left_to_both():
    torch.set_num_threads(1)
    divided = DividedThreads()
    divided.lend(True)
    assert (torch.get_num_threads(), divided.refresher) == (1, 1)


def test_close_ends_the_child_even_when_it_is_deaf(live, monkeypatch):
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    process = child(monkeypatch, live, deaf)
    monkeypatch.setattr(refresher_process, "STOP_SECONDS", 0.2)
    process.watch(True)
    running = process.child
    while "up" not in (live.path / "refresher.log").read_text():
        time.sleep(0.01)
    process.stop()
    assert running.poll() == -signal.SIGKILL
    process.stop()  # twice is no error


def test_two_beats_at_once_do_not_end_the_refresher(live):
    heart = refresher.Heartbeat(live, live.request().token)
    threads = [threading.Thread(target=lambda: [heart.beat() for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    beat = json.loads((live.path / "refresher.json").read_text())
    assert beat["count"] == 800 and beat["pid"] == os.getpid()


def test_a_failed_refresh_is_told_by_the_heartbeat(shared, live, retriever, monkeypatch):
    take_snapshot(live, shared[1], 2, retriever, shared[2])
    maker = IndexMaker(live.request(), "cpu")

    def make(*arguments):
        raise QualityError("finds nothing")

    monkeypatch.setattr(maker, "make", make)
    with pytest.raises(QualityError):
        refresher._refreshed(live, maker, 2, refresher.Heartbeat(live, live.request().token))
    beat = json.loads((live.path / "refresher.json").read_text())
    assert (beat["state"], beat["step"], beat["error"]) == ("failed", 2, "finds nothing")


def test_progress_is_told_by_blocks_and_then_by_processor_time(live):
    heart = refresher.Heartbeat(live, live.request().token, blocks=5)
    beats = []
    heart.set(state="embedding", step=2, blocks_done=0)
    for blocks in (3, 2):
        heart.tick(blocks)
        heart.beat()
        beats.append(read_heartbeat(live))
    assert [(beat["state"], beat["blocks_done"]) for beat in beats] == [("embedding", 3), ("building", 5)]
    assert beats[0]["cpu_seconds"] == 0 and beats[1]["cpu_seconds"] == int(time.process_time())


def test_a_folder_that_is_no_live_folder(tmp_path):
    with pytest.raises(InputError, match="not a refresh request"):
        RefreshFolder(tmp_path).request()
