"""Counts of the faults that were really injected, for `make faults` and docs/reliability.md.

`REALMCTL_FAULTS_JSON=FILE` makes the tests write their counts there. `REALMCTL_FAULT_ROUNDS=N` multiplies the number of random
faults; 1 is for `make test`.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from realmctl.version import __version__

Case = TypeVar("Case")


def rounds() -> int:
    """How many times as many random faults as in the fast tests."""
    return int(os.environ.get("REALMCTL_FAULT_ROUNDS", "1"))


def counting() -> bool:
    """Whether this is `make faults`, which takes every case and counts them."""
    return bool(os.environ.get("REALMCTL_FAULTS_JSON"))


def sampled(cases: Sequence[Case], one_in: int) -> Sequence[Case]:
    """All cases under `make faults`; in `make test` the first, every `one_in`-th, and the last."""
    return cases if counting() else [*cases[:-1:one_in], *cases[-1:]]


def share(number: int) -> int:
    """As many random faults of a kind under `make faults`; a third of them in `make test`."""
    return number * rounds() if counting() else -(-number // 3)


def count(kind: str, injected: int, **facts: Any) -> None:
    """Record that `injected` more faults of a kind were injected, and that all of them ended as promised."""
    assert injected > 0
    path = os.environ.get("REALMCTL_FAULTS_JSON")
    if not path:
        return
    with Path(path).open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # tests may run in several processes
        file.seek(0)
        text = file.read()
        found: dict[str, Any] = json.loads(text) if text else {"machine": machine(), "faults": {}, "rounds": rounds()}
        before = found["faults"].get(kind, {}).get("injected", 0)
        found["faults"][kind] = {"injected": before + injected, **facts}
        file.truncate(0)
        file.write(json.dumps(found, indent=1, sort_keys=True) + "\n")


def machine() -> dict[str, str]:
    """What the faults were injected on."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "processor": models[0].partition(":")[2].strip() if models else platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": platform.system(),
        "python": platform.python_version(),
        "realmctl": __version__,
    }
