"""The rows in the files of `benchmarks/rows`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from row import Row

ROWS = Path(__file__).parent / "rows"


def rows_of(file: Path) -> tuple[Row, ...]:
    """The rows of one file."""
    spec = importlib.util.spec_from_file_location(f"rows_{file.stem}", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where processes that a row forks look for its functions
    spec.loader.exec_module(module)
    rows: tuple[Row, ...] = module.ROWS
    return rows


def all_rows() -> list[tuple[Path, Row]]:
    """Every row with its file, in the order of the page."""
    return [(file, row) for file in sorted(ROWS.glob("*.py")) for row in rows_of(file)]
