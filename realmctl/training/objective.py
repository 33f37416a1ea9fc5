"""The interfaces of the training loop: the objective, which a step computes, and observers, which act beside the steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from realmctl.errors import ConfigError
from realmctl.registry import name_of

Sums = Mapping[str, tuple[float | Tensor, float | Tensor]]
"""{metric: (sum, count)} of one micro-batch. The loop adds up the micro-batches of a batch and divides sum by count. Scalar tensors on
the device stay there until the step is over: to read one means to wait for the device."""


Part = TypeVar("Part")
"""A micro-batch of an objective."""


class Objective(ABC, Generic[Part]):
    """Modules, data and loss of one kind of training. A step uses one batch, which has one or more micro-batches, `Part`.

    modules: What is trained. lr_multipliers: {module: factor} for the modules whose learning rate differs from the schedule's.
    """

    modules: nn.ModuleDict
    lr_multipliers: Mapping[nn.Module, float] = MappingProxyType({})

    @abstractmethod
    def draw(self, step: int) -> Sequence[Part]:
        """Return the micro-batches of step `step` (from 0). Their losses add up to the loss of the batch."""

    @abstractmethod
    def loss(self, part: Part) -> tuple[Tensor | None, Sums]:
        """Return the loss of a micro-batch, a scalar (None: it has nothing to learn from), and its metrics."""


class Observer:
    """What happens beside the steps: an index is renewed, weights are measured, alarms are raised. It sees the lines of metrics.

    name: The key of its state in checkpoints; each observer of a run has another. finished: Whether the run ends before its last step. It is
    the same in all processes, and in a run that was resumed.
    """

    name: str = ""
    finished: bool = False

    def before_step(self, step: int) -> Mapping[str, Any]:
        """Called after `step` steps, before the next one draws its examples. Return metrics to log with the step.

        Raises:
            QualityError: An alarm is on at which the run stops.
        """
        return {}

    def after_step(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Process the metrics of a step. Return further metrics to log."""
        return {}

    def at_end(self, step: int) -> Mapping[str, Any]:
        """Measure the weights after the last step; `step` are taken. Return metrics to log in a line of their own, if any."""
        return {}

    def state(self) -> Any:
        """Return the JSON state that a checkpoint must keep in addition to the weights; None if there is none."""
        return None

    def restore(self, state: Any) -> None:
        """Restore what `state` returned.

        Raises:
            InputError: A file that the state names is missing or damaged. The observer must be unchanged then.
        """


def require_scalar(loss: object, what: object) -> None:
    """Check what a loss returned. Raises ConfigError, which names the class of `what`, for what no gradient can be taken of."""
    found, trains = type(loss).__name__, False
    if isinstance(loss, Tensor):
        found, trains = f"a tensor of shape {[*loss.shape]}", loss.requires_grad or not torch.is_grad_enabled()
        if trains and loss.ndim == 0:
            return
    raise ConfigError(
        f"the loss of {name_of(type(what))} is {found} {'with' if trains else 'without'} a gradient, and training needs a scalar tensor with one. "
        "Add up what it computes, and detach nothing that is trained."
    )


def merged(*found: Mapping[str, Any]) -> dict[str, Any]:
    """Join metrics of a step. The names of raised `alarms` of all of them are kept."""
    alarms = [name for each in found for name in each.get("alarms", ())]
    return {name: value for each in found for name, value in each.items() if name != "alarms"} | (
        {"alarms": alarms} if alarms else {}
    )


class StepSums:
    """What the micro-batches of this process add up to. It stays on the device until it is read, after the step."""

    def __init__(self) -> None:
        self._losses: list[Tensor] = []
        self._sums: list[tuple[str, float | Tensor, float | Tensor]] = []

    def add(self, loss: Tensor | None, sums: Sums) -> None:
        """Add a micro-batch. Its loss is None if it had nothing to learn from."""
        if loss is not None:
            self._losses.append(loss.detach())
        self._sums += [(name, value, count) for name, (value, count) in sums.items()]

    @property
    def learned(self) -> bool:
        """Whether some micro-batch had a loss."""
        return bool(self._losses)

    def read(self) -> tuple[float | None, dict[str, tuple[float, float]]]:
        """Wait for the device. Return the loss, and {metric: (sum, count)}, added in float64 in the order of the micro-batches."""
        numbers: list[float | Tensor] = [*self._losses, *(number for _, *pair in self._sums for number in pair)]
        values = iter(_read(numbers))
        loss = sum(next(values) for _ in self._losses) if self._losses else None
        terms: defaultdict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
        for name, _, _ in self._sums:
            value, count = terms[name]
            terms[name] = value + next(values), count + next(values)
        return loss, dict(terms)


def _read(numbers: list[float | Tensor]) -> list[float]:
    """The numbers as floats. Those on the device are copied together."""
    there = [number.double() for number in numbers if isinstance(number, Tensor)]
    read = iter(torch.stack(there).tolist() if there else [])
    return [next(read) if isinstance(number, Tensor) else float(number) for number in numbers]
