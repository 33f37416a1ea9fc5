"""What every test may use: files that need not outlive a power cut, and the data folder where there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(autouse=True, scope="session")
def nothing_outlives_a_power_cut() -> Iterator[None]:
    """Tests write thousands of small files; waiting for the disk would be most of their time."""
    fsync, os.fsync = os.fsync, lambda handle: None
    yield
    os.fsync = fsync


@pytest.fixture
def shared_data() -> Path:
    """`../shared/data` beside the repository; a test that needs it is skipped where it is missing."""
    if not SHARED_DATA.is_dir():
        pytest.skip("no shared/data folder beside the repository")
    return SHARED_DATA
