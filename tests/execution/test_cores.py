"""How many cores are usable and free: containers, busy machines, and what users give."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from realmctl.execution import cores


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with this many cores for the process, of so many, with this load and this limit of a container."""

    def machine(affinity: int, total: int = 0, load: float = 0.0, limit: str = "max 100000") -> None:
        (tmp_path / "cpu.max").write_text(limit)
        monkeypatch.setattr(cores, "CGROUP_LIMIT", tmp_path / "cpu.max")
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(affinity)))
        monkeypatch.setattr(os, "cpu_count", lambda: total or affinity)
        monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))

    return machine


@pytest.mark.parametrize(
    ("given", "usable", "free"),
    [
        ({"affinity": 2}, 2, 2),
        ({"affinity": 2, "load": 1.9}, 2, 1),
        ({"affinity": 2, "load": 12.0}, 2, 1),
        ({"affinity": 8, "load": 3.0}, 8, 5),
        ({"affinity": 4, "total": 64, "load": 16.0}, 4, 3),
        ({"affinity": 64, "limit": "150000 100000"}, 2, 2),
        ({"affinity": 64, "limit": "10000 100000"}, 1, 1),
        ({"affinity": 8, "limit": "damaged"}, 8, 8),
    ],
)
def test_usable_and_free_cores(machine, given, usable, free):
    machine(**given)
    assert (cores.usable_cores(), cores.free_cores()) == (usable, free)


def test_what_the_user_gives_comes_first(machine, monkeypatch):
    machine(affinity=8, load=6.0)
    monkeypatch.setattr(cores, "_measured", False)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setenv(cores.THREADS, "7")
    cores.use_free_cores()
    assert (os.environ[cores.THREADS], cores.given_threads()) == ("7", 7)
    monkeypatch.delenv(cores.THREADS)
    cores.use_free_cores()
    assert (os.environ[cores.THREADS], cores.given_threads()) == ("2", None)


def test_the_option_sets_the_threads_of_torch(chain, tmp_path):
    code = (
        "import sys; from realmctl.cli import app; import atexit, torch\n"
        "atexit.register(lambda: print(torch.get_num_threads(), file=sys.stderr))\n"
        f"app.main(['embed', '-w', {str(chain.folder)!r}, '--threads', '3', '--dry-run'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, cores.THREADS: "1"}
    )
    assert ran.returncode == 0 and ran.stderr.splitlines()[-1] == "3", ran.stderr
