"""What a trial of a stage tells: how long all of its work takes. `trying.py` has what measures it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

STEPS = "steps"
"""The unit of trainings."""


class NotTried(Exception):
    """No trial can tell how long a stage takes. The text is the reason."""


@dataclass(frozen=True)
class Trial:
    """What a part of the work tells of all of it.

    Attributes:
        before: Seconds before the first unit, and of what is not counted.
        each: Seconds of a unit.
        count: Units of the whole work; 0 for work that was done to its end without counting.
        unit: What is counted, such as `steps` or `blocks`.
        memory_bytes: Largest memory of this process; 0 where it is not known.
        gpu_memory_bytes: Largest memory of PyTorch on the GPUs; 0 without one.
        disk_bytes: Bytes that the whole work writes; for a training those of its checkpoints.
    """

    before: float
    each: float = 0.0
    count: float = 0.0
    unit: str = ""
    memory_bytes: float = 0.0
    gpu_memory_bytes: float = 0.0
    disk_bytes: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of the whole work."""
        return self.before + self.each * self.count

    def times(self, factor: float) -> Trial:
        """The same work on `factor` times as much to read."""
        return dataclasses.replace(self, count=self.count * factor, disk_bytes=self.disk_bytes * factor)

    def estimate(self) -> dict[str, float]:
        """The numbers of a dry run, without those that are not known."""
        steps = {"seconds_before_first_step": self.before, "seconds_per_step": self.each} if self.unit == STEPS else {}
        sizes = {name: getattr(self, name) for name in ("memory_bytes", "gpu_memory_bytes", "disk_bytes")}
        return {"seconds": self.seconds, **steps, **{name: size for name, size in sizes.items() if size}}
