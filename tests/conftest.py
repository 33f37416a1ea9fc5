"""What every test may use: a quiet process, and the data folder of the workshop where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def shared_data() -> Path:
    """`../shared/data` beside the repository; a test that needs it is skipped where it is missing."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no {SHARED_DATA.name} folder beside the repository")
    return SHARED_DATA
