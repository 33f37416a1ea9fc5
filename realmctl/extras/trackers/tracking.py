"""Runs where people watch them: the records of `metrics.jsonl`, sent to a tracker as they are written (`--track`).

`metrics.jsonl` stays the truth; a tracker gets a copy. All are used without a network unless the user says otherwise:
TensorBoard, trackio and MLflow write files here, and Weights & Biases is offline unless WANDB_MODE is set.

A version that is being written knows the run that it has at a tracker (`.scratch/tracker`). So a training that continues goes on
with its run, and another workspace, whose versions have the same names, gets runs of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import Any

from realmctl.artifacts import Writer
from realmctl.artifacts.hashing import digest
from realmctl.errors import ConfigError, as_realmctl_error, one_line, require_package
from realmctl.execution import processes
from realmctl.log import say

EVENTS = "events.out.tfevents.*"
PROJECT = "realmctl"
NOT_IN_MLFLOW = re.compile(r"[^\w./ -]")
"""What the name of a metric of MLflow does not have, such as the @ of recall@5."""
Line = Mapping[str, Any]
"""A record of `metrics.jsonl`: `step`, numbers, and the names of `alarms`."""


class Tracker(ABC):
    """Gets the records of one run."""

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

    def begin(self, step: int, metrics: Path) -> None:
        pass

    def add(self, line: Line) -> None:
        pass

    def end(self, failed: bool) -> None:
        pass


class Guarded(Tracker):
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


class TensorBoard(Tracker):
    """Event files in FOLDER/STAGE/VERSION, such as `runs/pretrain/v1`.

    A run that continues hides the steps after its checkpoint, which it takes again. An alarm is a text.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, step: int, metrics: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        empty = not list(self._folder.glob(EVENTS))
        self._writer = SummaryWriter(str(self._folder), purge_step=None if empty else step + 1, flush_secs=5)
        if empty:
            _add_all(self, metrics)

    def add(self, line: Line) -> None:
        for name, value in _numbers(line).items():
            self._writer.add_scalar(name, value, line["step"])
        if "alarms" in line:
            self._writer.add_text("alarms", ", ".join(line["alarms"]), line["step"])

    def end(self, failed: bool) -> None:
        self._writer.close()


class Wandb(Tracker):
    """Weights & Biases, offline unless WANDB_MODE says otherwise. It ignores the steps that a run takes again.

    WANDB_RUN_ID, which an agent of sweeps sets, goes before the id of our own in `known`.
    """

    def __init__(self, project: str, name: str, config: Mapping[str, Any], known: Path) -> None:
        self._module, self._known = importlib.import_module("wandb"), known
        self._given = {"project": project, "name": name, "config": dict(config)}

    def begin(self, step: int, metrics: Path) -> None:
        os.environ.setdefault("WANDB_MODE", "offline")
        begun = self._known.exists()
        if not begun:
            self._known.write_text(uuid.uuid4().hex)
        own = os.environ.get("WANDB_RUN_ID") or self._known.read_text()
        self._module.init(**self._given, id=own, resume="allow")
        if not begun:
            _add_all(self, metrics)

    def add(self, line: Line) -> None:
        self._module.log({**_numbers(line), **_alarms(line)}, step=line["step"])

    def end(self, failed: bool) -> None:
        self._module.finish(exit_code=int(failed))


class Trackio(Tracker):
    """trackio. A run has no id that a caller can choose: a run that continues is the last one with its name."""

    def __init__(self, project: str, name: str, config: Mapping[str, Any], known: Path) -> None:
        self._module, self._known = importlib.import_module("trackio"), known
        self._given = {"project": project, "name": name, "config": dict(config)}

    def begin(self, step: int, metrics: Path) -> None:
        begun = self._known.exists()
        self._module.init(**self._given, resume="allow" if begun else "never")
        if not begun:
            self._known.touch()
            _add_all(self, metrics)

    def add(self, line: Line) -> None:
        self._module.log({**_numbers(line), **_alarms(line)}, step=line["step"])

    def end(self, failed: bool) -> None:
        self._module.finish()


class Mlflow(Tracker):
    """MLflow, into the store that `uri` or MLFLOW_TRACKING_URI names, by default one in this folder. An alarm is a tag."""

    def __init__(self, uri: str, name: str, config: Mapping[str, Any], known: Path) -> None:
        self._module, self._uri, self._name, self._config = importlib.import_module("mlflow"), uri, name, config
        self._known = known

    def begin(self, step: int, metrics: Path) -> None:
        if self._uri:
            self._module.set_tracking_uri(self._uri)
        self._module.set_experiment(PROJECT)
        if self._known.exists():
            self._module.start_run(run_id=self._known.read_text())
            return
        run = self._module.start_run(run_name=self._name)
        self._known.write_text(run.info.run_id)
        self._module.log_params(dict(self._config))
        _add_all(self, metrics)

    def add(self, line: Line) -> None:
        numbers = {NOT_IN_MLFLOW.sub("_", name): value for name, value in _numbers(line).items()}
        self._module.log_metrics(numbers, step=line["step"])
        if "alarms" in line:
            self._module.set_tag(f"alarms at step {line['step']}", ", ".join(line["alarms"]))

    def end(self, failed: bool) -> None:
        self._module.end_run("FAILED" if failed else "FINISHED")


def check_tracker(track: str | None) -> None:
    """Check that a tracker can be used. Raises ConfigError for a file in place of a folder, ResourceError without its package."""
    if track is None:
        return
    name, _, place = track.partition(":")
    require_package(name, name, f"--track {name}")
    if name == "tensorboard" and Path(place).exists() and not Path(place).is_dir():
        raise ConfigError(f"--track {track}: {place} is not a folder. Name a folder, or one that can be made.")


def tracker_of(track: str | None, what: str, out: Writer) -> Tracker:
    """Return the tracker of the version that `out` writes, for the stage `what`."""
    if track is None or not processes.is_first():
        return NoTracker()
    name, _, place = track.partition(":")
    run, config = f"{what}/{out.path.name.removesuffix('.partial')}", out.origin.settings
    known = out.scratch("tracker") / digest(track)
    tracker: Tracker
    if name == "tensorboard":
        tracker = TensorBoard(Path(place) / run)
    elif name == "mlflow":
        tracker = Mlflow(place, run, config, known)
    elif name == "wandb":
        tracker = Wandb(place or PROJECT, run, config, known)
    else:
        tracker = Trackio(place or PROJECT, run, config, known)
    return Guarded(tracker, track)


def add_later(track: str | None, what: str, out: Writer, line: Line) -> None:
    """Send a record that was made after the training to the run that this version has at its tracker."""
    with tracker_of(track, what, out) as tracker:
        tracker.begin(line["step"], out.file("metrics.jsonl"))
        tracker.add(line)


def _add_all(tracker: Tracker, metrics: Path) -> None:
    """Add the records of a run that the tracker does not know yet."""
    for line in metrics.read_text(encoding="utf-8").splitlines():
        tracker.add(json.loads(line))


def _numbers(line: Line) -> dict[str, float]:
    return {name: value for name, value in line.items() if name not in ("step", "alarms")}


def _alarms(line: Line) -> dict[str, str]:
    return {"alarms": ", ".join(line["alarms"])} if "alarms" in line else {}
