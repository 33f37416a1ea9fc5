"""Runs where people watch them: the records of `metrics.jsonl`, sent to a tracker as they are written (`--track`).

`metrics.jsonl` stays the truth; a tracker gets a copy. A version that is being written knows the run that it has at a tracker
(`.scratch/tracker`). So a training that continues goes on with its run, and another workspace, whose versions have the same names, gets runs of
its own. The trackers themselves have names (`realmctl.trackers`).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Self

from realmctl.artifacts import Writer
from realmctl.artifacts.hashing import digest
from realmctl.errors import ConfigError, as_realmctl_error, one_line, require_package
from realmctl.execution import processes
from realmctl.log import say
from realmctl.pipeline import Settings, runtime
from realmctl.registry import Registry
from realmctl.training.monitoring.curves import Curves, Line

TRACKERS = Registry("tracker", group="realmctl.trackers", core={})


class Tracker(Curves, ABC):
    """Gets the records of one run. A subclass has a name in the group `realmctl.trackers`, which is that of the package that it needs."""

    @classmethod
    def check(cls, place: str) -> None:
        """Check a place before the run. Raises ConfigError."""
        return

    @classmethod
    @abstractmethod
    def of(cls, place: str, run: str, config: Mapping[str, Any], known: Path) -> Self:
        """Return the tracker of a run.

        Args:
            place: What stands behind NAME: in `--track`.
            run: Name of the run, such as `pretrain/v1`.
            config: Settings of the run.
            known: File in which the tracker may keep which run it is.
        """


class Guarded(Curves):
    """A tracker whose package cannot harm the run: what it prints goes to stderr, and a record that it refuses is the last one it gets.

    Trackers greet on stdout (trackio 0.43 prints eight lines), which is for the results of a command alone.
    """

    def __init__(self, tracker: Tracker, track: str) -> None:
        self._tracker, self._track, self._works = tracker, track, True

    def begin(self, step: int, metrics: Path) -> None:
        """Raises ConfigError where the tracker cannot open a run."""
        try:
            with redirect_stdout(sys.stderr):
                self._tracker.begin(step, metrics)
        except Exception as error:
            raise as_realmctl_error(error) or ConfigError(
                f"--track {self._track} cannot open a run: {one_line(error)}. Leave --track out to train without it."
            ) from error

    def add(self, line: Line) -> None:
        self._try(lambda: self._tracker.add(line))

    def end(self, failed: bool) -> None:
        self._try(lambda: self._tracker.end(failed))

    def _try(self, work: Callable[[], None]) -> None:
        if self._works:
            try:
                with redirect_stdout(sys.stderr):
                    work()
            except Exception as error:
                self._works = False
                say(f"--track {self._track}: {one_line(error)}. It gets no more records; metrics.jsonl has them all.")


def check_track(flag: str, value: str) -> None:
    """Check the spelling of a tracker. Raises ConfigError."""
    name, colon, place = value.partition(":")
    if name not in TRACKERS.names() or (colon and not place) or value == "tensorboard":
        raise ConfigError(f"{flag} {value!r} is not tensorboard:FOLDER, trackio:PROJECT, wandb:PROJECT or mlflow:URI.")


class Tracked(Settings):
    """The option of all trainings that names a tracker."""

    track: str | None = runtime(
        "Where the metrics are shown while training runs: tensorboard:FOLDER, trackio, wandb or mlflow; a project stands behind a colon, such as "
        "wandb:PROJECT, and for mlflow the store. wandb is offline unless WANDB_MODE is set.",
        default=None,
        check=check_track,
        advanced=True,
    )

    def curves(self, what: str, out: Writer) -> Curves:
        """Return the tracker of the version that `out` writes, in the first process.

        Raises:
            ConfigError: The tracker cannot use its place.
            ResourceError: Its package is missing.
        """
        if self.track is None:
            return Curves()
        name, _, place = self.track.partition(":")
        kind = TRACKERS.load(name, Tracker)
        require_package(name, name, f"--track {name}")
        kind.check(place)
        if not processes.is_first():
            return Curves()
        run = f"{what}/{out.path.name.removesuffix('.partial')}"
        known = out.scratch("tracker") / digest(self.track)
        return Guarded(kind.of(place, run, out.origin.settings, known), self.track)
