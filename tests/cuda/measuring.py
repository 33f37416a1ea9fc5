"""Throughput and memory of stages, on whatever device there is."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from realmctl.pipeline import Stage
from realmctl.training.settings.base import TrainingStage


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A row of the table.

    Attributes:
        device: Name of the device, as its driver says it.
        what: What was measured.
        seconds: Time of a step, or of embedding all blocks.
        rows: Rows of the batch, or blocks.
        memory_bytes: Largest memory on the device.
    """

    device: str
    what: str
    seconds: float
    rows: int
    memory_bytes: float


def training_step(stage: TrainingStage) -> Measurement:
    """Take the first steps of a training stage, and throw them away."""
    _reset()
    found = stage.trial()
    return Measurement(device_name(), stage.command(), found.each, stage.batch_size, _memory(found.memory_bytes))


def embedding(stage: Stage, out: Path) -> Measurement:
    """Embed all blocks twice, and measure the second time."""
    stage.make(out / "first")
    _reset()
    start = time.perf_counter()
    made = stage.make(out / "second")
    seconds = time.perf_counter() - start
    return Measurement(device_name(), "embed", seconds, made.metrics["rows"], _memory(0.0))


def device_name() -> str:
    """What the driver calls the device."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def table_text(rows: Sequence[Measurement]) -> str:
    """Format the rows."""
    lines = [f"{rows[0].device}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}"]
    lines.append(f"{'stage':16}{'seconds':>10}{'rows/s':>12}{'memory':>12}")
    for row in rows:
        speed = f"{row.seconds:>10.4f}{row.rows / row.seconds:>12.1f}"
        lines.append(f"{row.what:16}{speed}{row.memory_bytes / 2**30:>8.2f} GiB")
    return "\n".join(lines)


def _reset() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _memory(on_host: float) -> float:
    return float(torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else on_host
