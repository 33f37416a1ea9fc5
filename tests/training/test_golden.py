"""The golden run: twenty pre-training steps keep their losses, so that a refactoring cannot move numbers unseen.

It pins the whole chain before pre-training too: world, blocks, spans, ICT, index. When a change is meant to move them,
say so in CHANGELOG.md and put in the output of `python tests/training/golden_run.py --pinned` and the processor it ran on.
Another maker's processor gets other kernels, whose last bits let a near-tied candidate win now and then: there the losses
are held to 5 % only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.golden_run import PINNED

ROOT = Path(__file__).parents[2]
MAKER = "AuthenticAMD"
LOSSES = [
    5.966526031494141, 6.28506326675415, 6.354619026184082, 5.990152835845947, 6.14091157913208,
    5.899319648742676, 6.092069625854492, 5.856576919555664, 5.999438285827637, 5.89931058883667,
    5.814467906951904, 5.902083873748779, 6.019991397857666, 6.143155097961426, 5.7969770431518555,
    5.805140018463135, 5.352686882019043, 5.33006477355957, 5.269705772399902, 5.457831859588623,
]  # fmt: skip


def test_twenty_steps():
    script = [sys.executable, str(ROOT / "tests/training/golden_run.py")]
    done = subprocess.run(script, env={**os.environ, **PINNED}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == pytest.approx(LOSSES, rel=1e-6 if processor_maker() == MAKER else 0.05)


def processor_maker() -> str:
    """`vendor_id` of Linux's /proc/cpuinfo, "" elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")), "")
