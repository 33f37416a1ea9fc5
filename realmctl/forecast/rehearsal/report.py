"""The report of a rehearsal: a line for each run, and whether all are equal."""

from __future__ import annotations

from collections.abc import Sequence

from realmctl.forecast.rehearsal.comparison import METRIC_TOLERANCE, WEIGHT_TOLERANCE
from realmctl.forecast.rehearsal.rehearsal import RehearsedRun
from realmctl.pipeline.comparing import aligned

_HEAD = ("output", "stage", "in", "killed", "compared with", "result")


def report_text(runs: Sequence[RehearsedRun]) -> str:
    """Format the runs for people."""
    table = [_HEAD]
    for run in runs:
        if run.difference is None:
            result = f"FAILED: {run.failure}"
        elif run.difference.same_bytes:
            result = "same bytes"
        else:
            found, verdict = run.difference, "equal" if run.equal else "DIFFERENT"
            result = f"{verdict}: weights within {found.weight:.1g}, metrics within {found.metric:.1g}"
        table.append((run.output, run.stage, run.how, run.killed or "nobody", run.compared_with, result))
    lines = [aligned(table)]
    unequal = sum(not run.equal for run in runs)
    lines.append(f"{len(runs)} runs, all equal" if not unequal else f"{unequal} of {len(runs)} runs differ or failed")
    lines.append(
        "Between different numbers of processes, weights may differ by {:g} + {:g} of their size, metrics of a step by {:g} + "
        "{:g} of their size. Everything else must be the same to the byte.".format(*WEIGHT_TOLERANCE, *METRIC_TOLERANCE)
    )
    return "\n".join(lines)
