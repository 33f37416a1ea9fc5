"""Make one version of a series, for a stage or for an import."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact, Origin, Writer, series, unfinished, verify, write_manifest
from realmctl.artifacts.artifact import Verification, verification
from realmctl.log import say


def make_version(
    out: Path,
    origin: Origin,
    finish: Callable[[Writer], Artifact],
    *,
    inputs: Collection[Artifact] = (),
    resumable: bool = False,
) -> Artifact:
    """Return the version of the series `out` with the recipe of `origin`: one that exists, or a new one from `finish`."""
    if made := series.find_version(out, origin.recipe, inputs):
        say(f"{origin.stage}: nothing to do, {made.path} has this recipe")
        return made
    with series.locked(out):
        series.commit_finished_runs(out)
        if made := series.find_version(out, origin.recipe, inputs):
            return made
        return finish(series.start_or_resume(out, origin, resumable))


def write_version(
    writer: Writer, write: Callable[[Writer], Mapping[str, Any]], inputs: Iterable[Artifact] = ()
) -> Artifact:
    """Verify the inputs, write the files with `write`, which returns the metrics, then the manifest, and commit."""
    start = time.monotonic()
    try:
        if verification() is not Verification.QUICK:
            for artifact in inputs:
                verify(artifact)
        metrics = {**writer.metrics, **write(writer)}
        seconds = time.monotonic() - start
        write_manifest(writer.path, writer.origin, metrics, seconds)
        made = series.commit(writer.path)
    finally:
        unfinished.remove_failed_run(writer)
    say(f"{writer.origin.stage}: made {made.path} in {seconds:.1f} s")
    series.warn_if_not_meant(made)
    return made
