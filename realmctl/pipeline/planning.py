"""Dry runs: what a stage would do. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from realmctl.amounts import duration_text, number_text, size_text
from realmctl.artifacts import Origin, open_artifact, series
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.execution import processes
from realmctl.log import say
from realmctl.pipeline.stage import Stage
from realmctl.pipeline.trial import NotTried

DAY = 86_400.0
"""Seconds from which the time that a stage takes is told before it starts."""


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
            say("dry run: a part of the work is done in a temporary folder, to measure time and memory")
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


def tell_days(stage: Stage, out: Path, go_on: bool) -> None:
    """Say how long a stage takes if that is more than a day.

    Args:
        stage: The stage.
        out: Folder of the series. What is there already, or begun, takes no trial.
        go_on: Whether it is to start in spite of that.

    Raises:
        ConfigError: It takes more than a day, and is not to start.
    """
    if not stage.may_take_days or processes.world_size() > 1:
        return
    known = plan(stage, out)
    if known["reuses"] or known["resumes"]:
        return
    say(f"{stage.command()}: a part of the work is tried, to know how long all of it takes")
    with stage.localised() as local:
        try:
            trial = local.trial()
        except NotTried:
            return
    if trial.seconds < DAY:
        return
    shorter = f" {found}" if (found := stage.shorter(trial)) else ""
    told = f"{stage.command()}: this takes about {duration_text(trial.seconds)} on this machine.{shorter}"
    if not go_on:
        raise ConfigError(f"{told} Start it with --yes if that is meant.")
    say(f"{told} It starts now.")


def _seconds_of_equal_settings(out: Path, origin: Origin) -> dict[str, float]:
    """Return how long the last version took, if its settings are the same. Its inputs may be others."""
    try:
        last = open_artifact(out)
    except (InputError, MismatchError):
        return {}
    equal = (last.manifest.stage, last.settings) == (origin.stage, origin.settings)
    return {"seconds_of_last_version": float(last.manifest.seconds)} if equal else {}


def stage_plan_text(value: Mapping[str, Any]) -> str:
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
