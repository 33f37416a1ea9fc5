"""The trackers: TensorBoard, trackio, Weights & Biases and MLflow.

All are used without a network unless the user says otherwise: TensorBoard, trackio and MLflow write files here, and Weights & Biases is offline
unless WANDB_MODE is set.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from realmctl.errors import ConfigError
from realmctl.extras.trackers.tracker import Tracker
from realmctl.training.monitoring.curves import Line

EVENTS = "events.out.tfevents.*"
PROJECT = "realmctl"
NOT_IN_MLFLOW = re.compile(r"[^\w./ -]")
"""What the name of a metric of MLflow does not have, such as the @ of recall@5."""


class TensorBoard(Tracker):
    """Event files in FOLDER/STAGE/VERSION, such as `runs/pretrain/v1`.

    A run that continues hides the steps after its checkpoint, which it takes again. An alarm is a text.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def check(cls, place: str) -> None:
        if Path(place).exists() and not Path(place).is_dir():
            raise ConfigError(
                f"--track tensorboard:{place}: {place} is not a folder. Name a folder, or one that can be made."
            )

    @classmethod
    def of(cls, place: str, run: str, config: Mapping[str, Any], known: Path) -> Self:
        return cls(Path(place) / run)

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

    @classmethod
    def of(cls, place: str, run: str, config: Mapping[str, Any], known: Path) -> Self:
        return cls(place or PROJECT, run, config, known)

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

    @classmethod
    def of(cls, place: str, run: str, config: Mapping[str, Any], known: Path) -> Self:
        return cls(place or PROJECT, run, config, known)

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

    @classmethod
    def of(cls, place: str, run: str, config: Mapping[str, Any], known: Path) -> Self:
        return cls(place, run, config, known)

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


def _add_all(tracker: Tracker, metrics: Path) -> None:
    """Add the records of a run that the tracker does not know yet."""
    for line in metrics.read_text(encoding="utf-8").splitlines():
        tracker.add(json.loads(line))


def _numbers(line: Line) -> dict[str, float]:
    return {name: value for name, value in line.items() if name not in ("step", "alarms")}


def _alarms(line: Line) -> dict[str, str]:
    return {"alarms": ", ".join(line["alarms"])} if "alarms" in line else {}
