"""Too many open files, no memory, a full or failing disk: at each call of the system in stages, import and export.

A small library (`injected.c`) fails the call, whoever makes it: Python, safetensors or hnswlib. Nothing is taken for damaged, nothing
half is left, the exit code is 5, and the run after it ends with the undisturbed content.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.counting import count, counting, rounds

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("cc") or shutil.which("c++")
CHOSEN = ("embed", "export")
"""What the fast test tries. The slow one tries all."""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or COMPILER is None, reason="needs Linux and a C compiler"),
    pytest.mark.timeout(7200),
]


def injected(folder: Path, step: int, *chosen: str) -> int:
    """Fail every `step`-th call of what is chosen, or of all. Return the number of faults."""
    library, below = folder / "injected.so", folder / "below"
    below.mkdir()
    subprocess.run(
        [str(COMPILER), "-x", "c", "-O1", "-shared", "-fPIC", "-o", library, ROOT / "tests/faults/injected.c"],
        check=True,
    )
    run = subprocess.run(
        [sys.executable, "-m", "tests.faults.injection", below, str(step), *chosen],
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(library), "INJECTED_BELOW": str(below), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert [problem for _, _, wrong in lines for problem in wrong] == []
    faults = {name: struck for name, struck, _ in lines}
    assert faults and all(faults.values()) and faults.keys() >= set(chosen)
    return sum(faults.values())


def test_some_calls_that_fail(tmp_path):
    count(
        "EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT and EIO at calls of the system",
        injected(tmp_path, 40 if counting() else 120, *CHOSEN),
    )


@pytest.mark.slow
def test_calls_that_fail_in_every_stage_import_and_export(tmp_path):
    step = 5 if rounds() == 1 else 1
    count("EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT and EIO at calls of the system (all)", injected(tmp_path, step))
