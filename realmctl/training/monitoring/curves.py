"""The seam between a training and a place where people watch it: the records of `metrics.jsonl`, as they are written. The core has no such place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Line = Mapping[str, Any]
"""A record of `metrics.jsonl`: `step`, numbers, and the names of `alarms`."""


class Curves:
    """Gets the records of one run, and shows them nowhere. A room has others (`TrainSettings.curves`)."""

    def begin(self, step: int, metrics: Path) -> None:
        """Open a run that starts, or goes on after `step` steps; `metrics` has the records so far."""

    def add(self, line: Line) -> None:
        """Add the record of a step."""

    def end(self, failed: bool) -> None:
        """Write what is left."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(failed=kind is not None)
