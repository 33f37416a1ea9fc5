"""What differs between runs, and the numbers that came of it: for `compare` and the report."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from realmctl.amounts import number_text
from realmctl.artifacts import Artifact, Manifest, catalogue, open_artifact
from realmctl.artifacts.manifest import is_artifact
from realmctl.errors import MismatchError
from realmctl.pipeline.comparing import Known, aligned, differences, shown

STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Student's t for a two-sided 95 % interval with 1 to 15 degrees of freedom."""
FEWEST = 3
"""Runs from which an interval is given: of two, Student's t is wider than any measure."""
SHARES = (
    *("em", "em_*", "f1", "f1_*", "accuracy", "recall*", "*_recall*", "*_share"),
    *("ndcg*", "map*", "ap*", "mrr*", "rr*", "p@*", "precision*", "success*", "hit*"),
)
"""Names of measures that lie between 0 and 1."""


@dataclass(frozen=True)
class Number:
    """A number over the runs of a row: its mean, and the 95 % confidence interval of the mean (Student's t); None for fewer than 3 runs.

    The interval of a measure that lies between 0 and 1 ends there.
    """

    mean: float
    low: float | None
    high: float | None
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float], name: str = "") -> Number:
        """The mean and interval of some values of the metric `name`."""
        mean, count = fmean(values), len(values)
        if count < FEWEST:
            return cls(mean, None, None, tuple(values))
        t = STUDENT_T[count - 2] if count - 2 < len(STUDENT_T) else 1.96 + 2.5 / count
        half = t * stdev(values) / math.sqrt(count)
        least, most = (0.0, 1.0) if any(fnmatchcase(name.lower(), share) for share in SHARES) else (-math.inf, math.inf)
        return cls(mean, max(least, mean - half), min(most, mean + half), tuple(values))

    def __str__(self) -> str:
        if self.low is None or self.high is None or self.low == self.high:
            return number_text(self.mean)
        return f"{number_text(self.mean)} [{number_text(self.low)}, {number_text(self.high)}]"


@dataclass(frozen=True)
class ComparedRun:
    """Runs that differ in no setting but the seed. settings: values of the settings that vary. numbers: by name."""

    versions: tuple[str, ...]
    settings: Mapping[str, Any]
    numbers: Mapping[str, Number]

    def number(self, name: str) -> str:
        """A number as text; with its own count where some runs lack it."""
        if name not in self.numbers:
            return "-"
        found = self.numbers[name]
        count = len(found.values)
        return f"{found}{'' if count == len(self.versions) else f' (n = {count})'}"


@dataclass(frozen=True)
class Comparison:
    """The runs of one stage: a row for each setting of what varies. settings, numbers: the columns, in order."""

    stage: str
    settings: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: tuple[ComparedRun, ...]

    def cells(self) -> list[list[str]]:
        """The table as text: a heading, and a line for each row. Several runs of a row are counted."""
        lines = [["runs", *self.settings, *self.numbers]]
        for row in self.rows:
            numbers = (row.number(name) for name in self.numbers)
            lines.append([_names(row.versions), *(shown(row.settings[name]) for name in self.settings), *numbers])
        return lines


def runs_at(paths: Iterable[Path]) -> list[Artifact]:
    """Return the versions at paths: a version itself, and all readable versions of a series or of a folder of series.

    Raises InputError when there is none at a path.
    """
    found: dict[Path, Artifact] = {}
    for path in paths:
        listed = catalogue.listing(path) if not is_artifact(path) and catalogue.series_in(path) else []
        versions = [version.path for version in listed if version.manifest] or [path]
        found |= {version: open_artifact(version) for version in versions}
    return [*found.values()]


def compare(
    runs: Sequence[tuple[str, Manifest]], known: Known, headlines: Mapping[str, Sequence[str]]
) -> list[Comparison]:
    """Return a table for each stage that made some of the runs.

    Args:
        runs: Name and manifest of each run.
        known: Artifacts whose settings are compared where the runs read different ones.
        headlines: {stage: names of its most important metrics}; a name may end in `*`. All metrics for another stage.

    Raises:
        MismatchError: Only one run is named.
    """
    if len(runs) < 2:
        raise MismatchError(f"{runs[0][0]} is one run. Name a series of several versions, or several of them.")
    tables = []
    for stage in dict.fromkeys(manifest.stage for _, manifest in runs):
        own = [(name, manifest) for name, manifest in runs if manifest.stage == stage]
        varying = differences([manifest for _, manifest in own], known)
        columns = tuple(name for name in varying if name.rpartition(".")[2] != "seed")
        grouped: dict[str, list[int]] = {}
        for place in range(len(own)):
            grouped.setdefault(repr([varying[name][place] for name in columns]), []).append(place)
        numbers = _numbers([manifest for _, manifest in own], headlines.get(stage, ("*",)))
        rows = []
        for places in grouped.values():
            metrics = [own[place][1].metrics for place in places]
            values = {name: [one[name] for one in metrics if _is_number(one.get(name))] for name in numbers}
            rows.append(
                ComparedRun(
                    tuple(own[place][0] for place in places),
                    {name: varying[name][places[0]] for name in columns},
                    {name: Number.of(found, name) for name, found in values.items() if found},
                )
            )
        tables.append(Comparison(stage, columns, numbers, tuple(rows)))
    return tables


def _numbers(manifests: Sequence[Manifest], patterns: Sequence[str]) -> tuple[str, ...]:
    """Names of the metrics that are numbers in some run, in the order of the patterns."""
    found = [name for one in manifests for name, value in one.metrics.items() if _is_number(value)]
    return tuple(dict.fromkeys(name for pattern in patterns for name in found if fnmatchcase(name, pattern)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _names(versions: Sequence[str]) -> str:
    """`w/qa-model/v1, v2 (n = 2)` for two versions of a series."""
    names, folder = list[str](), ""
    for version in versions:
        series, _, number = version.rpartition("/")
        names.append(number if series == folder and number else version)
        folder = series
    return ", ".join(names) + (f" (n = {len(versions)})" if len(versions) > 1 else "")


def comparison_text(tables: Sequence[Comparison]) -> str:
    """Format tables for people. An interval in brackets is the 95 % confidence interval of the mean over the runs of a row."""
    parts = []
    for table in tables:
        few = any(len(row.versions) == FEWEST - 1 for row in table.rows)
        told = f"\nTwo runs are too few for an interval. It is given from {FEWEST} on." if few else ""
        parts.append(f"{table.stage}:\n{aligned(table.cells())}{told}")
    return "\n\n".join(parts)


def comparison_csv(tables: Sequence[Comparison]) -> str:
    """Format tables as one CSV: a line for each row, with the mean, the ends of the interval and the number of runs."""
    settings = list(dict.fromkeys(name for table in tables for name in table.settings))
    numbers = list(dict.fromkeys(name for table in tables for name in table.numbers))
    heading = ["stage", "versions", "runs", *settings]
    heading += [f"{name}{end}" for name in numbers for end in ("", "_low", "_high")]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heading)
    for table in tables:
        for row in table.rows:
            line = [table.stage, " ".join(row.versions), len(row.versions)]
            line += [shown(row.settings[name]) if name in row.settings else "" for name in settings]
            for name in numbers:
                number = row.numbers.get(name)
                line += ["", "", ""] if number is None else [number.mean, number.low, number.high]
            writer.writerow(line)
    return out.getvalue().rstrip("\n")
