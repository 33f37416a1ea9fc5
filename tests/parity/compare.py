"""`make parity`: the largest deviation of every number from transformers 4.57.6, as a table. Exit 1 above tolerance.

Usage: python -m tests.parity.compare FOLDER...   (folders that reference.py wrote)
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch

from tests.parity.ours import Ours, deviations, load

TOLERANCE = 1e-5
"""Of fp32 numbers, relative to the largest of their tensor; ids, places and texts must be equal."""


def compared(folder: Path) -> dict[str, float]:
    """{number: deviation}; the answers read count as a number: 0 when all are the same text."""
    with tempfile.TemporaryDirectory() as workspace:
        ours = Ours(folder, Path(workspace))
        found = deviations(load(folder), ours.numbers())
    return {**found, "openqa/text": 0.0 if ours.read == ours.read_there else float("inf")}


def by_kind(found: dict[str, float]) -> dict[str, float]:
    """The largest over all questions: openqa/3/ids counts as openqa/ids."""
    worst: dict[str, float] = {}
    for name, value in found.items():
        parts = name.split("/")
        kind = f"{parts[0]}/{parts[-1]}"
        worst[kind] = max(worst.get(kind, 0.0), value)
    return worst


def table(folder: Path, worst: dict[str, float]) -> bool:
    """Print the deviations. Returns whether all are within the tolerance."""
    print(f"{folder}\n  {'number':<24} {'deviation':>10}  (tolerance {TOLERANCE:.0e})")
    for kind, value in sorted(worst.items()):
        print(f"  {kind:<24} {value:>10.1e}{'' if value <= TOLERANCE else '  <-- too far'}")
    return all(value <= TOLERANCE for value in worst.values())


if __name__ == "__main__":
    torch.set_num_threads(1)
    fitting = [table(folder, by_kind(compared(folder))) for folder in map(Path, sys.argv[1:])]
    sys.exit(0 if fitting and all(fitting) else 1)
