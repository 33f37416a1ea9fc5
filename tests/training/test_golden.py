"""The golden run: twenty pre-training steps keep their losses, so that a refactoring cannot move numbers unseen.

It pins the whole chain before pre-training too: world, blocks, spans, ICT, index. When a change is meant to move them, say so
in CHANGELOG.md and run `python tests/training/golden_run.py --record`.
"""

from __future__ import annotations

import json

import pytest

from tests.training import golden_run


def test_twenty_steps():
    """Other kernels and other numbers of threads moved a loss by 2e-7 at most."""
    golden = json.loads(golden_run.GOLDEN.read_text())["losses"]
    assert golden_run.losses_on_recorded_candidates() == pytest.approx(golden, rel=1e-5)
