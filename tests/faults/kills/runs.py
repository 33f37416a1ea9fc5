"""Runs of one stage in children that are disturbed, and what holds after them."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from realmctl.artifacts import Artifact, open_artifact, verify
from realmctl.pipeline import Stage
from tests.faults.children import ended, forked


class Runs:
    """Runs of a stage into the series `out`. `expected`: the content of a run that nobody disturbed, `seconds`: how long the last took."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.out, self.log = stage, folder / "out", folder / "log"
        self.seconds = 0.0
        self.expected = self.finished().content
        self.clear()

    def finished(self) -> Artifact:
        """Run to the end."""
        start = time.monotonic()
        code = ended(forked(lambda: self.stage.make(self.out), self.log))
        assert code == 0, self.log.read_text()
        self.seconds = time.monotonic() - start
        return open_artifact(self.out)

    def check_finished(self) -> None:
        """Run to the end: the content is right, every byte is, and nothing unfinished is left. Then remove it all."""
        made = self.finished()
        assert (made.content, made.path.name) == (self.expected, "v1"), self.log.read_text()[-3000:]
        verify(made)
        assert not list(self.out.glob("*.partial")) and not list(self.out.rglob("quarantine"))
        self.clear()

    def clear(self) -> None:
        """Remove the series."""
        shutil.rmtree(self.out)
