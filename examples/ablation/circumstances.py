"""How the runs were made: versions, machine, minutes. They come from the manifests as far as those record them."""

import os
import platform
from collections.abc import Iterator, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from notation import table
from results import Run

from realmctl.artifacts import Artifact

CPU_INFO = Path("/proc/cpuinfo")


def versions(runs: Sequence[Run]) -> str:
    """Return the versions: realmctl's from the manifests, the others from the present installation."""
    made = sorted({str(artifact.manifest["realmctl"]) for artifact in _artifacts(runs)})
    return (
        f"realmctl {', '.join(made) or 'unknown'} (the runs' manifests); torch {version('torch')}, "
        f"Python {platform.python_version()} (read when this page was made)"
    )


def hardware(runs: Sequence[Run]) -> str:
    """Describe this machine, and whether the runs were made on it."""
    hosts = {str(artifact.manifest["host"]) for artifact in _artifacts(runs)}
    named = "this machine" if hosts == {platform.node()} else "another machine" if hosts else "none"
    return f"{_cpu()}, {os.cpu_count()} cores (read when this page was made; the runs' manifests name {named})"


def minutes(runs: Sequence[Run]) -> str:
    """Return a table of the sum of all stages' times, and of the time during which at least one stage ran."""
    rows = [(f"seed {run.seed}", str(len(run.made)), *_minutes(list(run.made.values()))) for run in runs]
    total = ("all", str(sum(len(run.made) for run in runs)), *_minutes(list(_artifacts(runs))))
    return table(["", "stages", "minutes of work", "minutes of wall clock"], [*rows, total])


def _minutes(artifacts: Sequence[Artifact]) -> tuple[str, str]:
    work = sum(float(artifact.manifest["seconds"]) for artifact in artifacts)
    return f"{work / 60:.1f}", f"{busy_seconds(artifacts) / 60:.1f}"


def busy_seconds(artifacts: Sequence[Artifact]) -> float:
    """Return the seconds during which at least one stage ran.

    A stage ended at its manifest's `time`, after `seconds`.
    """
    total, until = 0.0, float("-inf")
    for start, end in sorted(map(_span, artifacts)):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _span(artifact: Artifact) -> tuple[float, float]:
    end = datetime.fromisoformat(artifact.manifest["time"]).timestamp()
    return end - float(artifact.manifest["seconds"]), end


def _artifacts(runs: Sequence[Run]) -> Iterator[Artifact]:
    return (artifact for run in runs for artifact in run.made.values())


def _cpu() -> str:
    lines = CPU_INFO.read_text(encoding="utf-8").splitlines() if CPU_INFO.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
