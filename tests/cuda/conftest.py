"""Tests on CUDA devices: `make test-cuda`. They are skipped without one. At the end a table of speeds is printed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.cuda.measuring import Measurement, table_text

HERE = Path(__file__).parent
MEASURED = pytest.StashKey[list[Measurement]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder that ask for a device, and skip them where there are too few."""
    for item in items:
        if HERE not in item.path.parents or "cuda" not in item.path.name:
            continue
        needed = 2 if "two_gpus" in item.name else 1
        item.add_marker(pytest.mark.cuda)
        found = torch.cuda.device_count() if torch.cuda.is_available() else 0
        item.add_marker(
            pytest.mark.skipif(found < needed, reason=f"needs {needed} CUDA device(s), and there are {found}")
        )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[MEASURED] = []


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> list[Measurement]:
    """The rows of the table so far."""
    return request.config.stash[MEASURED]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if rows := config.stash[MEASURED]:
        terminalreporter.write_sep("=", "what this device did")
        terminalreporter.write_line(table_text(rows))
