"""Runs where people watch them: the records of `metrics.jsonl`, sent to a tracker as they are written (`--track`).

`metrics.jsonl` stays the truth; a tracker gets a copy. A version that is being written knows the run that it has at a tracker
(`.scratch/tracker`). So a training that continues goes on with its run, and another workspace, whose versions have the same names, gets runs of
its own. The trackers themselves are in rooms and packages (`realmctl.trackers`).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from realmctl.artifacts import Writer
from realmctl.artifacts.hashing import digest
from realmctl.errors import ConfigError, as_realmctl_error, one_line, require_package
from realmctl.execution import processes
from realmctl.log import say
from realmctl.training.names import TRACKERS

Line = Mapping[str, Any]
"""A record of `metrics.jsonl`: `step`, numbers, and the names of `alarms`."""


class Tracker(ABC):
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

    @abstractmethod
    def begin(self, step: int, metrics: Path) -> None:
        """Open a run that starts, or goes on after `step` steps; `metrics` has the records so far."""

    @abstractmethod
    def add(self, line: Line) -> None:
        """Add the record of a step."""

    @abstractmethod
    def end(self, failed: bool) -> None:
        """Write what is left."""

    def __enter__(self) -> Tracker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(failed=kind is not None)


class NoTracker(Tracker):
    """Without `--track`, and in all processes but the first."""

    @classmethod
    def of(cls, place: str, run: str, config: Mapping[str, Any], known: Path) -> Self:
        return cls()

    def begin(self, step: int, metrics: Path) -> None:
        pass

    def add(self, line: Line) -> None:
        pass

    def end(self, failed: bool) -> None:
        pass


class Guarded(NoTracker):
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


def check_tracker(track: str | None) -> None:
    """Check that a tracker can be used. Raises ConfigError for a place that it cannot use, ResourceError without its package."""
    if track is None:
        return
    name, _, place = track.partition(":")
    kind = TRACKERS.load(name, Tracker)
    require_package(name, name, f"--track {name}")
    kind.check(place)


def tracker_of(track: str | None, what: str, out: Writer) -> Tracker:
    """Return the tracker of the version that `out` writes, for the stage `what`."""
    if track is None or not processes.is_first():
        return NoTracker()
    name, _, place = track.partition(":")
    run = f"{what}/{out.path.name.removesuffix('.partial')}"
    known = out.scratch("tracker") / digest(track)
    return Guarded(TRACKERS.load(name, Tracker).of(place, run, out.origin.settings, known), track)


def add_later(track: str | None, what: str, out: Writer, line: Line) -> None:
    """Send a record that was made after the training to the run that this version has at its tracker."""
    with tracker_of(track, what, out) as tracker:
        tracker.begin(line["step"], out.file("metrics.jsonl"))
        tracker.add(line)
