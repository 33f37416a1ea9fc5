"""The file of results: one JSON line for each run of an arm. Lines are only ever added, so that several sessions add up."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from realmctl.errors import InputError, MismatchError

Line = dict[str, Any]
Key = tuple[str, str, str, int]
"""Split, arm, rate, seed."""


def key_of(line: Mapping[str, Any]) -> Key:
    """Return what a line is the run of."""
    return line["split"], line["arm"], line["rate"], line["seed"]


class Runs:
    """The newest run of each key, given lines in the order of the file."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = {key_of(line): line for line in lines}

    def require_alike(self) -> None:
        """Raise MismatchError if the runs of an arm with one rate differ in their settings."""
        first_of: dict[tuple[str, str, str], Line] = {}
        for line in self.lines.values():
            first = first_of.setdefault((line["split"], line["arm"], line["rate"]), line)
            if first["settings"] != line["settings"]:
                raise MismatchError(
                    f"{line['arm']} at {line['rate']}: the {line['split']} runs of the seeds {first['seed']} and "
                    f"{line['seed']} have different settings, so they cannot be in one table. Run examples/ablation.sh "
                    "to its end, or delete the lines of the older settings."
                )

    def has(self, key: Key, settings: str) -> bool:
        """Return whether a run with these settings is there."""
        return key in self.lines and self.lines[key]["settings"] == settings

    def of(self, split: str, arm: str, rate: str) -> dict[int, Line]:
        """Return {seed: line} of an arm with one rate, seeds in order."""
        found = {line["seed"]: line for key, line in self.lines.items() if key[:3] == (split, arm, rate)}
        return dict(sorted(found.items()))

    def by_seed(
        self, split: str, arm: str, rate: str, metric: str, group: str = "scores", part: str | None = None
    ) -> dict[int, float]:
        """Return {seed: value} of the runs that measured `metric` in a group of numbers, or in a part of a group."""
        groups = {seed: line.get(group, {}) for seed, line in self.of(split, arm, rate).items()}
        values = {seed: (found if part is None else found.get(part, {})).get(metric) for seed, found in groups.items()}
        return {seed: float(value) for seed, value in values.items() if value is not None}


def read_lines(path: Path) -> list[Line]:
    """Return the lines of the file, none if it does not exist. Raises InputError for a damaged line."""
    if not path.exists():
        return []
    found = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            key_of(line), line["settings"], line["scores"]
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{path}, line {number} is not a run of the ablation. Delete the line, and run examples/ablation.sh again."
            ) from None
        found.append(line)
    return found


def append_line(path: Path, line: Line) -> None:
    """Add a run with one write, so that processes beside each other can add to the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, json.dumps(line, ensure_ascii=False).encode() + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
