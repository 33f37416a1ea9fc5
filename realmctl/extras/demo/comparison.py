"""Scores and utility artifacts side by side.

Folders with the same name, such as seeds of one setting, form one row: mean ± sample standard deviation over the
folders.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from realmctl.artifacts import open_artifact

COLUMNS = {
    "em": "EM",
    "recall@1": "recall@1",
    "recall@5": "recall@5",
    "recall@20": "recall@20",
    "retrieval_utility": "utility",
    "top_1_utility": "top-1 utility",
    "log_prob": "log-prob",
    "questions": "questions",
    "queries": "queries",
}
COUNTS = {"questions", "queries"}


def table_text(arguments: Sequence[str]) -> str:
    """Return the table of NAME=FOLDER arguments as text. Raises InputError if a folder cannot be read."""
    lines = table(arguments)
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    rows = []
    for name, *cells in lines:
        padded = (text.rjust(width) for text, width in zip(cells, widths[1:], strict=True))
        rows.append("  ".join([name.ljust(widths[0]), *padded]))
    return "\n".join(rows)


def table(arguments: Sequence[str]) -> list[list[str]]:
    """Return a heading and a row for each name, in order.

    `-` marks a missing value; columns without values are left out.
    """
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for name, _, folder in (argument.partition("=") for argument in arguments):
        rows.setdefault(name, []).append(open_artifact(folder).metrics)
    columns = {
        key: title for key, title in COLUMNS.items() if any(key in run for runs in rows.values() for run in runs)
    }
    lines = [["", *columns.values()]]
    lines += [
        [name, *(cell(key, [run[key] for run in runs if key in run]) for key in columns)] for name, runs in rows.items()
    ]
    return lines


def cell(key: str, values: Sequence[float]) -> str:
    """Format `0.250`, or `0.250 ± 0.010` for several values.

    Counts are not averaged: different counts are all listed.
    """
    if not values:
        return "-"
    if key in COUNTS:
        return "/".join(str(value) for value in dict.fromkeys(values))
    return f"{fmean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")
