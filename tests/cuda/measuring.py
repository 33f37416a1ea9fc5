"""Throughput, model FLOP utilisation and memory of stages, on whatever device there is."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from realmctl.artifacts import Artifact
from realmctl.forecast.chain import PlannedStage
from realmctl.forecast.costs import Made, cost_of
from realmctl.forecast.machines import DEVICES, Device
from realmctl.forecast.sizes import EncoderShape, Text, VectorsSize
from realmctl.pipeline import Stage, roles
from realmctl.training.settings.base import TrainingStage


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A row of the table.

    Attributes:
        device: Name of the device, as its driver says it.
        what: What was measured.
        seconds: Time of a step, or of embedding all blocks.
        rows: Rows of the batch, or blocks.
        flops: Floating-point operations in that time, by the formulas of `realmctl plan`.
        memory_bytes: Largest memory on the device.
    """

    device: str
    what: str
    seconds: float
    rows: int
    flops: float
    memory_bytes: float

    @property
    def utilisation(self) -> float | None:
        """Share of the peak of dense bfloat16 products. None for a device that the table of `realmctl plan` lacks."""
        device = device_of(self.device)
        return None if device is None else self.flops / self.seconds / device.flops


def device_of(name: str) -> Device | None:
    """The device of `realmctl plan` that a driver calls this, such as "NVIDIA A100-SXM4-80GB"."""
    words = set(re.split(r"[^a-z0-9]+", name.lower()))
    for key, device in DEVICES.items():
        if set(key.split("-")) <= words:
            return device
    return None


def training_step(stage: TrainingStage, shape: EncoderShape) -> Measurement:
    """Take the first steps of a training stage, and throw them away."""
    _reset()
    found = stage.trial()
    cost = cost_of(_planned(stage), _inputs(stage, shape), None, lambda bert: shape)
    assert cost is not None
    return Measurement(
        device_name(),
        stage.command(),
        found["seconds_per_step"],
        cost.rows,
        cost.work / cost.steps,
        _memory(found["memory_bytes"]),
    )


def embedding(stage: Stage, shape: EncoderShape, out: Path) -> Measurement:
    """Embed all blocks twice, and measure the second time."""
    stage.make(out / "first")
    _reset()
    start = time.perf_counter()
    made = stage.make(out / "second")
    seconds = time.perf_counter() - start
    cost = cost_of(_planned(stage), _inputs(stage, shape), None, lambda bert: shape)
    assert cost is not None
    return Measurement(device_name(), "embed", seconds, made.metrics["rows"], cost.work, _memory(0.0))


def device_name() -> str:
    """What the driver calls the device."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def table_text(rows: Sequence[Measurement]) -> str:
    """Format the rows."""
    lines = [f"{rows[0].device}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}"]
    lines.append(f"{'stage':16}{'seconds':>10}{'rows/s':>12}{'TFLOP/s':>10}{'utilisation':>13}{'memory':>12}")
    for row in rows:
        share = "not known" if row.utilisation is None else f"{row.utilisation:.1%}"
        lines.append(
            f"{row.what:16}{row.seconds:>10.4f}{row.rows / row.seconds:>12.1f}{row.flops / row.seconds / 1e12:>10.2f}{share:>13}"
            f"{row.memory_bytes / 2**30:>8.2f} GiB"
        )
    return "\n".join(lines)


def _planned(stage: Stage) -> PlannedStage:
    fields = roles(type(stage))
    settings = {name: getattr(stage, name) for name, role in fields.items() if role.name != "reads"}
    inputs = {name: name for name, role in fields.items() if role.name == "reads" and getattr(stage, name) is not None}
    return PlannedStage(stage.command(), stage.command(), settings, inputs)


def _inputs(stage: Stage, shape: EncoderShape) -> Made:
    """Sizes of the stage's inputs, by the names of its fields."""
    made, blocks = Made(), stage.inputs()["blocks"]
    made.texts |= {"blocks": _text(blocks), "spans": _text(blocks)}
    made.shapes |= dict.fromkeys(("encoder", "retriever", "model"), shape)
    made.vectors["index"] = VectorsSize(made.texts["blocks"].blocks, 128)
    return made


def _text(blocks: Artifact) -> Text:
    ends = np.load(blocks.file("offsets.npy"), allow_pickle=False)
    return Text(0.0, len(ends) - 1, float(ends[-1]) / (len(ends) - 1))


def _reset() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _memory(on_host: float) -> float:
    return float(torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else on_host
