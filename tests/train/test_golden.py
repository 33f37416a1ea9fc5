"""The golden run: twenty pre-training steps keep their losses, so that a refactoring cannot move numbers unseen.

It pins the whole chain before pre-training too: world, blocks, spans, ICT, index. When a change is meant to move them,
say so in CHANGELOG.md and put in the output of `python tests/train/golden_run.py --pinned`.
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
LOSSES = [
    6.0120625495910645, 6.152333736419678, 6.063287734985352, 5.902186393737793, 5.79496955871582,
    6.197628021240234, 6.078701972961426, 5.596756935119629, 6.047290802001953, 5.508805274963379,
    5.82537841796875, 5.67850399017334, 5.73491907119751, 5.803524971008301, 5.141969680786133,
    5.228865146636963, 5.547349452972412, 5.221061706542969, 6.0400567054748535, 5.5496039390563965,
]  # fmt: skip


def test_twenty_steps():
    script = [sys.executable, str(ROOT / "tests/train/golden_run.py")]
    done = subprocess.run(script, env={**os.environ, **PINNED}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == pytest.approx(LOSSES, rel=1e-6)
