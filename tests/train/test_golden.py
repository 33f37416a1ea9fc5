"""The golden run: twenty pre-training steps keep their losses, so that a refactoring cannot move numbers unseen.

It pins the whole chain before pre-training too: world, blocks, spans, ICT, index. When a change is meant to move them,
say so in CHANGELOG.md and put in the output of `python tests/train/golden_run.py --pinned` and the processor it ran on.
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

from tests.train.golden_run import PINNED

ROOT = Path(__file__).parents[2]
MAKER = "AuthenticAMD"
LOSSES = [
    6.249680995941162, 6.206332206726074, 6.191059112548828, 6.11945104598999, 6.167675495147705,
    5.853097438812256, 6.047400951385498, 5.997546195983887, 5.92013692855835, 5.8743815422058105,
    5.74064302444458, 5.869917392730713, 5.898720741271973, 6.014379501342773, 5.724950313568115,
    5.612112045288086, 5.460756301879883, 5.225010395050049, 5.022183895111084, 5.708960056304932,
]  # fmt: skip


def test_twenty_steps():
    script = [sys.executable, str(ROOT / "tests/train/golden_run.py")]
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
