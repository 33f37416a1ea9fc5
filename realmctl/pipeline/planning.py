"""Dry runs: what a stage would do. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from realmctl.amounts import duration_text, number_text, size_text
from realmctl.artifacts import Origin, open_artifact, series
from realmctl.errors import InputError, MismatchError
from realmctl.pipeline.stage import Stage
from realmctl.pipeline.trial import NotTried


def plan(stage: Stage, out: Path, *, measure: bool = False) -> dict[str, Any]:
    """Return what `stage.make(out)` would do, as JSON values. Raises the errors that it would raise before any work.

    Args:
        stage: The stage.
        out: Folder of the series.
        measure: Do a part of the work in a temporary folder, to estimate time and memory.
    """
    out = series.series_folder(out, stage.makes)
    with stage.localised() as local:
        local.check()
        origin = local.origin()
        made = local.find(out, origin)
        unfinished = None if made else local.unfinished(out, origin)
        estimate = {**local.estimate(), **_seconds_of_equal_settings(out, origin)}
        if measure and not made:
            with suppress(NotTried):
                estimate |= local.trial().estimate()
        found = local.preview() if measure else {}
    return {
        "stage": stage.command(),
        "makes": str(made.path if made else (unfinished or out / f"v{series.next_number(out)}").with_suffix("")),
        "reuses": made is not None,
        "resumes": unfinished is not None,
        "inputs": {name: str(artifact.path) for name, artifact in stage.inputs().items()},
        "found": found,
        "settings": dict(origin.settings),
        "recipe": origin.recipe,
        "estimate": estimate,
    }


def _seconds_of_equal_settings(out: Path, origin: Origin) -> dict[str, float]:
    """Return how long the last version took, if its settings are the same. Its inputs may be others."""
    try:
        last = open_artifact(out)
    except (InputError, MismatchError):
        return {}
    equal = (last.manifest.stage, last.settings) == (origin.stage, origin.settings)
    return {"seconds_of_last_version": float(last.manifest.seconds)} if equal else {}


def plan_text(value: Mapping[str, Any]) -> str:
    """Format a plan for people."""
    verb = "reuse" if value["reuses"] else "resume" if value["resumes"] else "make"
    lines = [f"{value['stage']}: would {verb} {value['makes']}"]
    lines += [f"  input    {name:<20} {path}" for name, path in value["inputs"].items()]
    lines += [f"  found    {name:<20} {text}" for name, text in value["found"].items()]
    lines += [f"  setting  {name:<20} {setting}" for name, setting in value["settings"].items()]
    lines += [f"  estimate {name:<25} {_amount(name, number)}" for name, number in value["estimate"].items()]
    return "\n".join(lines)


def _amount(name: str, number: float) -> str:
    if name.endswith("bytes"):
        return size_text(int(number))
    return duration_text(number) if "seconds" in name else number_text(number)
