"""The report of a rehearsal: a line for each run, and whether all are equal."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from realmctl.forecast.rehearsal.comparison import METRIC_TOLERANCE, WEIGHT_TOLERANCE, Difference
from realmctl.forecast.rehearsal.rehearsal import RehearsedRun

_HEAD = ("output", "stage", "in", "killed", "compared with", "result")


def report_of(rows: Sequence[RehearsedRun]) -> dict[str, Any]:
    """Return the rows as JSON values."""
    return {
        "rehearsal": [{**dataclasses.asdict(row), "equal": row.equal} for row in rows],
        "equal": all(row.equal for row in rows),
    }


def report_text(value: Mapping[str, Any]) -> str:
    """Format a report for people."""
    table = [_HEAD, *(_cells(row) for row in value["rehearsal"])]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    unequal = sum(not row["equal"] for row in value["rehearsal"])
    lines.append(
        f"{len(table) - 1} runs, all equal" if not unequal else f"{unequal} of {len(table) - 1} runs differ or failed"
    )
    absolute, relative = WEIGHT_TOLERANCE
    lines.append(
        f"Between different numbers of processes, weights may differ by {absolute:g} + {relative:g} of their size, metrics of a "
        f"step by {METRIC_TOLERANCE[0]:g} + {METRIC_TOLERANCE[1]:g} of their size. Everything else must be the same to the byte."
    )
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (row["output"], row["stage"], row["how"], row["killed"] or "nobody", row["compared_with"], _result(row))


def _result(row: Mapping[str, Any]) -> str:
    if row["difference"] is None:
        return f"FAILED: {row['failure']}"
    found = Difference(**row["difference"])
    if found.same_bytes:
        return "same bytes"
    verdict = "equal" if row["equal"] else "DIFFERENT"
    return f"{verdict}: weights within {found.weight:.1g}, metrics within {found.metric:.1g}"
