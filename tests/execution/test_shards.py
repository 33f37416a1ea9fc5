"""Shards: units in order whatever the workers do, in bounded memory, and no process left behind."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from realmctl.errors import ConfigError, ResourceError, as_realmctl_error
from realmctl.execution.shards import AHEAD_PER_WORKER, map_units, worker_count
from tests.fixtures import shard_functions as functions
from tests.fixtures.processes import is_alive
from tests.fixtures.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_of_the_units(workers):
    made = map_units(functions.square, range(40), workers, initializer=functions.start, initargs=(5,))
    assert list(made) == [unit * unit + 5 for unit in range(40)]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_endless_stream_of_units_is_read_only_so_far_ahead(workers):
    taken = 0

    def endless() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    made = map_units(functions.process, endless(), workers)
    processes = [next(made) for _ in range(20)]
    assert taken <= 20 + AHEAD_PER_WORKER * workers
    assert (os.getpid() in processes) == (workers == 1)
    made.close()
    assert not multiprocessing.active_children()


SCRIPT = """
from pathlib import Path
from stages.chunk import Chunk

def work():
    with Path("ran").open("a") as file:
        file.write("once ")
    print(Chunk(corpus=(Path("texts.jsonl"),), tokenizer="train:300", workers=2).make(Path("blocks")))

"""


@pytest.mark.parametrize("call", ["work()", "if __name__ == '__main__':\n    work()"])
def test_a_script_may_start_workers_at_its_top_level(tmp_path, call):
    lines = (
        json.dumps({"id": str(number), "text": "The town of Velford is old. It has a harbour."}) for number in range(40)
    )
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    (tmp_path / "script.py").write_text(f"{SCRIPT}{call}\n")
    run = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "ran").read_text() == "once ", "no worker ran it again"
    assert "blocks/v1" in run.stdout


def test_a_worker_that_dies_is_a_resource_error():
    with pytest.raises(ResourceError):
        list(map_units(functions.die_at_seven, range(40), 2))
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_unit_or_the_start_raises_is_raised_here(workers):
    done = []
    with pytest.raises(LookupError, match="seven"):
        for unit in map_units(functions.fail_at_seven, range(40), workers):
            done.append(unit)
    assert done == list(range(7))
    with pytest.raises(ValueError, match="start 3"):
        list(map_units(functions.square, range(9), workers, initializer=functions.failing_start, initargs=(3,)))


def test_leaving_early_does_not_wait_for_the_units_at_work():
    made = map_units(functions.sleep, range(9), 2)
    next(made)
    made.close()  # the units at work never end
    assert not multiprocessing.active_children()


def test_a_worker_without_memory_is_a_resource_error():
    with pytest.raises(MemoryError) as error:
        list(map_units(functions.out_of_memory, range(3), 2))
    known = as_realmctl_error(error.value)
    assert (
        isinstance(known, ResourceError) and "not enough memory" in str(known) and not multiprocessing.active_children()
    )


def test_workers_end_with_a_parent_that_is_killed():
    code = (
        "import multiprocessing; from realmctl.execution.shards import map_units; from tests.fixtures.shard_functions import sleep\n"
        "if __name__ == '__main__':\n"
        "    for pid in map_units(sleep, range(9), 2): print(pid, flush=True)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_alive(worker))


FORKED = """
import json, os, signal, threading, time
from pathlib import Path
from realmctl.execution import shards
from realmctl.execution.shards import map_units
from tests.fixtures import shard_functions as functions

signal.signal(signal.SIGTERM, lambda *_: Path("terminated").touch())
done, error = [], None
try:
    for unit in map_units(functions.fail_at_seven, range(40), 3, here=True):
        done.append(unit)
except LookupError as raised:
    error = str(raised)
made = map_units(functions.started_in, range(60), 3, initializer=functions.note_process, here=True)
started = [*made]
thread = threading.Thread(target=time.sleep, args=(60,), daemon=True)
thread.start()
alone = {process for _, process in map_units(functions.started_in, range(9), 2, initializer=functions.note_process, here=True)}
shards.ALONE_SECONDS = .02
several = [process for _, process in map_units(functions.started_in, range(9), 2, initializer=functions.note_process, here=True)]
shards.ALONE_SECONDS = 0
spawned = {process for _, process in map_units(functions.started_in, range(9), 2, initializer=functions.note_process, here=True)}
print(json.dumps([os.getpid(), done, error, started, [*alone], several, [*spawned]]), flush=True)
"""


def test_a_process_without_threads_is_a_worker_and_forks_the_others(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FORKED]
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    parent, done, error, started, alone, several, spawned = json.loads(run.stdout)
    assert done == list(range(7)) and error == "seven"
    assert {initialized for initialized, _ in started} == {parent}, "the forks have what the parent prepared"
    processes = {process for _, process in started}
    assert parent in processes and len(processes) > 1
    assert alone == [parent], "a process with threads is not forked, and small work needs no worker"
    assert several[0] == parent != several[-1], "which start when the time for that is over"
    assert parent not in spawned


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_forks_end_with_their_parent_and_without_its_handlers(tmp_path, number):
    """Also while they start, which takes them long here."""
    code = (
        "import multiprocessing, os, signal, time; from pathlib import Path; from realmctl.execution import shards; from realmctl.execution.shards import map_units; from tests.fixtures.shard_functions import sleep\n"
        "shards.standard_streams.prepare = lambda: time.sleep(0.5)\n"
        "signal.signal(signal.SIGTERM, lambda *_: Path('handled').open('a').write(f'{os.getpid()} '))\n"
        "for _ in map_units(sleep, range(9), 2, here=True): print(os.getpid(), multiprocessing.active_children()[0].pid, flush=True)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert parent.stdout is not None
    main, worker = map(int, parent.stdout.readline().split())
    try:
        os.kill(worker if number == signal.SIGTERM else main, number)
        wait_until(lambda: not is_alive(worker))
        assert not (tmp_path / "handled").exists()
    finally:
        parent.kill()
        parent.wait()


def test_zero_workers_are_all_cores_and_fewer_is_a_mistake():
    assert worker_count(0) == len(os.sched_getaffinity(0)) and worker_count(3) == 3
    with pytest.raises(ConfigError, match="--workers -1"):
        list(map_units(functions.square, range(3), -1))
