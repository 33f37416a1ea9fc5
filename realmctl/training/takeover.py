"""A run that goes on from another one that diverged: the same settings, and a lower rate from some step on.

Up to the first step at which `--then-lr` differs, both runs are the same run, bit for bit. So the new one takes over what the unfinished
one has, without its checkpoints of later steps. A run of the new command from the beginning would make the same artifact.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from realmctl.artifacts import Origin, Writer, series
from realmctl.artifacts.unfinished import partial_folders, read_recipe, write_recipe
from realmctl.log import say
from realmctl.training.checkpoint import remove_later
from realmctl.training.evaluation.best_weights import FOLDER, best_step
from realmctl.training.settings.base import changes_of

THEN_LR = "then_lr"


def same_until(there: Origin, here: Origin) -> int | None:
    """Return the first step at which two runs differ by their learning rate alone. None if they are equal, or differ in more."""
    alike = [{**origin.settings, THEN_LR: None} for origin in (there, here)]
    before, after = ((each.stage, each.stage_version, each.inputs) for each in (there, here))
    if alike[0] != alike[1] or before != after:
        return None
    first, second = (changes_of(origin.settings.get(THEN_LR) or ()).items() for origin in (there, here))
    return min((step for step, _ in first ^ second), default=None)


def taken_over(out: Path, origin: Origin) -> Path | None:
    """Return the unfinished run of the series `out` that a run of this origin takes over, None if there is none."""
    for partial in partial_folders(out):
        started = read_recipe(partial)
        if started and started.resumable and same_until(started.origin, origin) is not None:
            return partial
    return None


def take_over(out: Path, origin: Origin) -> None:
    """Make the unfinished run in the series `out`, if this origin takes one over, a run of this origin.

    Raises:
        LockedError: The run is not over.
    """
    if taken_over(out, origin) is None:
        return
    with series.locked(out):
        partial = taken_over(out, origin)
        started = read_recipe(partial) if partial else None
        if partial is None or started is None:
            return
        step = same_until(started.origin, origin) or 0
        best, checkpoints = (Writer(partial, origin).scratch(name) for name in (FOLDER, "checkpoints"))
        if best_step(best) > step:  # the best weights are of a step that does not count, and those before them are gone
            step = 0
            shutil.rmtree(best)
        remove_later(checkpoints, step)
        write_recipe(partial, origin, resumable=True)
        say(f"{origin.stage}: {partial} goes on with another learning rate from step {step} on")
