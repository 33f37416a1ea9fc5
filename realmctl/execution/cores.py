"""How many cores this process may use, and how many of them are free: threads of arithmetic that share a core wait for each other."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

CGROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")
"""What a container may use: microseconds of processor time, or `max`, and the period in microseconds."""
THREADS = "OMP_NUM_THREADS"
"""The variable by which PyTorch and its libraries learn the number of their threads when they are loaded."""


def usable_cores() -> int:
    """Return the number of cores that this process may use, by its affinity and by the limit of its container; at least 1."""
    cores = _cores()
    try:
        quota, period = CGROUP_LIMIT.read_text(encoding="ascii").split()
        limit = math.ceil(int(quota) / int(period))
    except (OSError, ValueError):  # no such file, or no limit
        limit = cores
    return max(1, min(cores, limit))


def _cores() -> int:
    """By the affinity of this process, where the system tells it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_cores() -> int:
    """Return how many of them are free, at least 1, by the number of processes that ran or waited in the last minute."""
    try:
        busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    except (AttributeError, OSError):  # Windows
        busy = 0.0
    return max(1, round(usable_cores() * (1 - busy)))


_measured = False


def use_threads(count: int) -> None:
    """Compute with this number of threads from now on, whether PyTorch is loaded already or not."""
    os.environ[THREADS] = str(count)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(count)


def use_free_cores() -> None:
    """Compute with a thread for each free core, unless OMP_NUM_THREADS says otherwise or PyTorch is loaded already."""
    global _measured
    if THREADS not in os.environ and "torch" not in sys.modules and (count := free_cores()) < _cores():
        _measured = True
        use_threads(count)


def given_threads() -> int | None:
    """Return the number of threads that the user gave by --threads or OMP_NUM_THREADS; None for the default."""
    given = os.environ.get(THREADS, "")
    return int(given) if given.isdecimal() and int(given) and not _measured else None
