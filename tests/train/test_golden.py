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
    6.009284496307373, 6.152334213256836, 6.0554585456848145, 5.888822078704834, 5.783883571624756,
    6.200557708740234, 6.056005001068115, 5.701686382293701, 6.049504280090332, 5.432504653930664,
    5.7886810302734375, 5.678140640258789, 5.731642246246338, 5.757286071777344, 5.103412628173828,
    5.30553674697876, 5.538361549377441, 5.170036315917969, 6.066555500030518, 5.531795024871826,
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
