"""Live curves: the records of `metrics.jsonl` as event files for TensorBoard (extra `tensorboard`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from realmctl.artifacts import Writer
from realmctl.errors import ConfigError, require_package
from realmctl.execution import processes

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

EVENTS = "events.out.tfevents.*"


class LiveCurves:
    """Writes the metrics of each step to FOLDER/STAGE/VERSION, such as `runs/pretrain/v1`. Without a folder it does nothing.

    Only the first process writes. A run that continues hides the steps after its checkpoint, which it takes again.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder if processes.is_first() else None
        self._writer: SummaryWriter | None = None

    @classmethod
    def check(cls, folder: Path | None) -> None:
        """Check a folder, if one is given. Raises ConfigError if it is a file, ResourceError without the package."""
        if folder is None:
            return
        require_package("tensorboard", "tensorboard", "--tensorboard")
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"--tensorboard {folder} is not a folder. Name a folder, or one that can be made.")

    @classmethod
    def of_run(cls, folder: Path | None, what: str, out: Writer) -> LiveCurves:
        """Return the curves of the version that `out` writes, for the stage `what`."""
        return cls(None if folder is None else folder / what / out.path.name.removesuffix(".partial"))

    def begin(self, step: int, metrics: Path) -> None:
        """Open the event file of a run that starts or continues after `step` steps.

        Args:
            step: Number of steps taken so far.
            metrics: The run's `metrics.jsonl`. Its lines are written first if the folder has no event file yet.
        """
        if self._folder is None:
            return
        from torch.utils.tensorboard import SummaryWriter

        empty = not list(self._folder.glob(EVENTS))
        self._writer = SummaryWriter(str(self._folder), purge_step=None if empty else step + 1, flush_secs=5)
        for line in metrics.read_text(encoding="utf-8").splitlines() if empty else ():
            self.add(json.loads(line))

    def add(self, line: Mapping[str, Any]) -> None:
        """Add the metrics of a step. Names of alarms become a text."""
        if self._writer is None:
            return
        for name, value in line.items():
            if name == "alarms":
                self._writer.add_text(name, ", ".join(value), line["step"])
            elif name != "step":
                self._writer.add_scalar(name, value, line["step"])

    def close(self) -> None:
        """Write what is left and close the file."""
        if self._writer is not None:
            self._writer.close()
