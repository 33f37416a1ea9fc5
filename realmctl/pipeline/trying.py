"""A trial: the first part of a stage's work, done in a temporary folder and measured. `--dry-run`, `plan` and `adapt` ask for it.

The stage runs as ever. Whatever takes long shows its progress, and the trial watches that: once it has seen enough of the units that are
counted, it ends the run, and says how long all of them take.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from realmctl.artifacts import Origin, Writer
from realmctl.artifacts.temporary import temporary_folder
from realmctl.log import observed
from realmctl.pipeline.trial import STEPS, Trial

MEASURED_STEPS = range(2, 20)
"""Fewest and most marks of progress that are measured, after the first one, which is slower than the others. Only steps have a most."""
ENOUGH_SECONDS = 3.0
"""A trial ends when what is counted was measured for so long."""
PEAK_OF_THIS_PROCESS = Path("/proc/self/clear_refs")


@dataclass
class TrialWriter(Writer):
    """The writer of a trial. What runs may tell it what the trial leaves out.

    Attributes:
        left_out: Seconds of work before the first step of which the trial did only a sample.
        checkpoint_bytes: Bytes of checkpoints that a whole training needs; None for other work.
    """

    left_out: float = 0.0
    checkpoint_bytes: float | None = None


class TrialEnd(Exception):
    """Raised to leave a stage when enough is measured."""


class _Piece:
    """A piece of work that shows progress.

    total: Its units; None if nobody knows.
    unit: What they are.
    ends: Whether enough of it ends the trial.
    """

    def __init__(self, total: int | None, unit: str, ends: bool) -> None:
        self.total, self.unit, self.ends = total, unit, ends
        self.begin = time.monotonic()
        self.done = 0
        self.marks: list[tuple[float, int]] = []
        """When how many units were done."""

    def skip(self, n: int) -> None:
        self.total = self.total and self.total - n

    def advance(self, n: int = 1, note: str = "") -> None:
        self.done += n
        self.marks.append((time.monotonic(), self.done))
        if self.ends and self.total is not None and self._is_enough(self.total):
            raise TrialEnd

    def _is_enough(self, total: int) -> bool:
        measured = len(self.marks) - 1
        if self.unit == STEPS and (measured >= MEASURED_STEPS.stop or self.done >= total):
            return True
        is_long = self.marks[-1][0] - self.marks[0][0] >= ENOUGH_SECONDS
        return measured >= MEASURED_STEPS.start and is_long and self.done < total

    @property
    def taken(self) -> float:
        """Seconds until the last mark."""
        return self.marks[-1][0] - self.begin

    def each(self) -> float:
        """Seconds of a unit. A step is as long as most are; of other units the mean counts, for several may end at once."""
        (first, before), (last, after) = self.marks[0], self.marks[-1]
        if len(self.marks) == 1:
            return (first - self.begin) / max(1, before)
        if self.unit == STEPS:
            return statistics.median(
                end - start for (start, _), (end, _) in zip(self.marks, self.marks[1:], strict=False)
            )
        return (last - first) / max(1, after - before)


class _Watch:
    """Sees the progress of a run, and ends it. It is the observer of `realmctl.log`.

    counted: The unit whose progress ends the run; empty for any.
    """

    def __init__(self, counted: str) -> None:
        self.counted, self.start = counted, time.monotonic()
        self.pieces: list[_Piece] = []

    def begin(self, total: int | None, unit: str) -> _Piece:
        self.pieces.append(_Piece(total, unit, ends=self.counted in ("", unit)))
        return self.pieces[-1]

    @property
    def longest(self) -> _Piece | None:
        """The piece that took longest of those whose units are counted; None if there is none."""
        counted = [piece for piece in self.pieces if piece.ends and piece.total and piece.marks]
        return max(counted, key=lambda piece: piece.taken, default=None)

    def found(self, left_out: float) -> Trial:
        """What was measured until now."""
        taken, piece = time.monotonic() - self.start, self.longest
        if piece is None:
            return Trial(taken + left_out)
        each = piece.each()
        before = piece.begin - self.start if piece.unit == STEPS else max(0.0, taken - each * piece.done)
        return Trial(before + left_out, each, float(piece.total or 0), piece.unit)


def tried(run: Callable[[Writer], Mapping[str, object]], origin: Origin, counted: str = "") -> Trial:
    """Do the first part of a stage's work in a temporary folder, and return what it tells of the whole.

    Work that shows no progress, or little of it, is done to its end.

    Args:
        run: The stage's `run`.
        origin: Its origin.
        counted: The unit whose progress ends the trial; other progress is then seen through. Empty for any.
    """
    with suppress(OSError):
        PEAK_OF_THIS_PROCESS.write_text("5", encoding="ascii")  # forgets the largest memory so far (proc(5))
    with temporary_folder() as folder:
        watch, out = _Watch(counted), TrialWriter(folder, origin)
        with suppress(TrialEnd), observed(watch):
            run(out)
        found = watch.found(out.left_out)
        memory, on_gpus = _memory()
        disk = _disk(out, watch, found)
        return dataclasses.replace(found, memory_bytes=memory, gpu_memory_bytes=on_gpus, disk_bytes=disk)


def _disk(out: TrialWriter, watch: _Watch, found: Trial) -> float:
    """Bytes that the whole work writes, from those that are there."""
    if out.checkpoint_bytes is not None:
        return out.checkpoint_bytes
    written = sum(path.stat().st_size for path in out.path.rglob("*") if path.is_file())
    return written * (found.count / watch.longest.done if watch.longest else 1.0)


def _memory() -> tuple[float, float]:
    """The largest memory of this process since the trial began, and of PyTorch on the GPUs, in bytes."""
    own = _peak_bytes()
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return own, 0.0
    return own, float(sum(map(torch.cuda.max_memory_reserved, range(torch.cuda.device_count()))))


def _peak_bytes() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    return (1.0 if sys.platform == "darwin" else 1024.0) * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
