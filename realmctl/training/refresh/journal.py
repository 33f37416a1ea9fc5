"""The journal of index swaps: which index was put into use at which step.

`journal.jsonl` has a line for each swap. Checkpoints keep the same lines in their sealed state, so a resumed run writes the
file again from there, and a damaged file has no effect.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from realmctl.artifacts.durable import sync

JOURNAL = "journal.jsonl"


@dataclass(frozen=True)
class Swap:
    """From `step` on, training searched the index of the snapshot of step `index_step`, whose content hash is `index`."""

    step: int
    index_step: int
    index: str


class Journal:
    """The swaps of a run so far. `path` is its `journal.jsonl`; None in processes that write no file."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.swaps: list[Swap] = []

    def add(self, swap: Swap) -> None:
        """Record a swap durably, before the index is used for the first time. Raises OSError when the disk is full."""
        self.swaps.append(swap)
        self._write()

    def state(self) -> list[dict[str, Any]]:
        """Return what a checkpoint records."""
        return [asdict(swap) for swap in self.swaps]

    def restore(self, lines: Sequence[dict[str, Any]]) -> None:
        """Go back to the swaps that a checkpoint recorded."""
        self.swaps = [Swap(**line) for line in lines]

    def begin(self) -> None:
        """Write the file when training starts or continues. What an earlier attempt left there is replaced."""
        self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        partial = self._path.with_name(f"{self._path.name}.writing")
        partial.write_text("".join(json.dumps(line) + "\n" for line in self.state()), encoding="utf-8")
        sync(partial)
        partial.replace(self._path)
        sync(self._path.parent)
