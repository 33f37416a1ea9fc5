"""Runs where people watch them: the records of `metrics.jsonl`, sent to a tracker as they are written (`--track`).

`metrics.jsonl` stays the truth; a tracker gets a copy. All are used without a network unless the user says otherwise:
TensorBoard, trackio and MLflow write files here, and Weights & Biases is offline unless WANDB_MODE is set.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, redirect_stdout
from pathlib import Path
from typing import Any

from realmctl.artifacts import Writer
from realmctl.errors import ConfigError, require_package
from realmctl.execution import processes

EVENTS = "events.out.tfevents.*"
PROJECT = "realmctl"
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
    def close(self) -> None:
        """Write what is left."""


class NoTracker(Tracker):
    """Without `--track`, and in all processes but the first."""

    def begin(self, step: int, metrics: Path) -> None:
        pass

    def add(self, line: Line) -> None:
        pass

    def close(self) -> None:
        pass


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
        for line in metrics.read_text(encoding="utf-8").splitlines() if empty else ():
            self.add(json.loads(line))

    def add(self, line: Line) -> None:
        for name, value in _numbers(line).items():
            self._writer.add_scalar(name, value, line["step"])
        if "alarms" in line:
            self._writer.add_text("alarms", ", ".join(line["alarms"]), line["step"])

    def close(self) -> None:
        self._writer.close()


class WandbCall(Tracker):
    """Weights & Biases, and trackio, whose call is the same: init, log, finish. A run that continues goes on under its name."""

    def __init__(self, module: str, project: str, name: str, config: Mapping[str, Any]) -> None:
        self._module, self._project, self._name, self._config = importlib.import_module(module), project, name, config
        if module == "wandb":
            os.environ.setdefault("WANDB_MODE", "offline")
            os.environ.setdefault("WANDB_RUN_ID", name.replace("/", "-"))  # by which it knows the run that continues

    def begin(self, step: int, metrics: Path) -> None:
        with _print_on_stderr():
            self._module.init(project=self._project, name=self._name, config=dict(self._config), resume="allow")

    def add(self, line: Line) -> None:
        alarms = {"alarms": ", ".join(line["alarms"])} if "alarms" in line else {}
        with _print_on_stderr():
            self._module.log({**_numbers(line), **alarms}, step=line["step"])

    def close(self) -> None:
        with _print_on_stderr():
            self._module.finish()


class Mlflow(Tracker):
    """MLflow, into the store that `uri` or MLFLOW_TRACKING_URI names, by default one in this folder. An alarm is a tag."""

    def __init__(self, uri: str, name: str, config: Mapping[str, Any]) -> None:
        self._module, self._uri, self._name, self._config = importlib.import_module("mlflow"), uri, name, config

    def begin(self, step: int, metrics: Path) -> None:
        with _print_on_stderr():
            if self._uri:
                self._module.set_tracking_uri(self._uri)
            self._module.set_experiment(PROJECT)
            self._module.start_run(run_name=self._name)
            self._module.log_params(dict(self._config))

    def add(self, line: Line) -> None:
        with _print_on_stderr():
            self._module.log_metrics(_numbers(line), step=line["step"])
            if "alarms" in line:
                self._module.set_tag(f"alarms at step {line['step']}", ", ".join(line["alarms"]))

    def close(self) -> None:
        with _print_on_stderr():
            self._module.end_run()


def _print_on_stderr() -> AbstractContextManager[object]:
    """Trackers greet on stdout (trackio 0.43 prints eight lines), which is for the results of a command alone."""
    return redirect_stdout(sys.stderr)


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
    run = f"{what}/{out.path.name.removesuffix('.partial')}"
    if name == "tensorboard":
        return TensorBoard(Path(place) / run)
    if name == "mlflow":
        return Mlflow(place, run, out.origin.settings)
    return WandbCall(name, place or PROJECT, run, out.origin.settings)


def _numbers(line: Line) -> dict[str, float]:
    return {name: value for name, value in line.items() if name not in ("step", "alarms")}
