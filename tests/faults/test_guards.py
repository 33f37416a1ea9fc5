"""Every guard is noticed when it is taken out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.counting import count
from tests.faults.guards import GUARDS

ROOT = Path(__file__).parents[2]


def test_every_guard_and_its_test_exist():
    """So that a guard that is renamed is noticed by the fast tests."""
    for owner, name, _, test in GUARDS:
        path, _, function = test.partition("::")
        assert hasattr(owner, name), name
        assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), test


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_without_its_guard_every_test_fails():
    run = subprocess.run([sys.executable, "-m", "tests.faults.guards"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    count("guards taken out, noticed by their tests", len(GUARDS))
