"""The interface between the training loop and an objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from torch import Tensor, nn

Sums = Mapping[str, tuple[float, float]]
"""{metric: (sum, count)} of one micro-batch. The loop adds up the micro-batches of a batch and divides sum by count."""


class Objective(Protocol):
    """Modules, data and loss of one kind of training. A step uses one batch, which has one or more micro-batches."""

    modules: nn.ModuleDict

    @property
    def lr_multipliers(self) -> Mapping[nn.Module, float]:
        """{module: factor} for the modules whose learning rate differs from the schedule's."""
        ...

    def draw(self, step: int) -> Sequence[Any]:
        """Return the micro-batches of step `step` (from 0). Their losses add up to the loss of the batch."""
        ...

    def loss(self, part: Any) -> tuple[Tensor | None, Sums]:
        """Return the loss of a micro-batch, a scalar (None: it has nothing to learn from), and its metrics."""
        ...

    def before_step(self, step: int) -> Mapping[str, float]:
        """Prepare the next draw, after `step` steps. Return metrics to log with the step."""
        ...

    def after_step(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Process the metrics of a step. Return further metrics to log."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the JSON state that a checkpoint must keep in addition to the weights."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned.

        Raises:
            InputError: A file that the state names is missing or damaged. The objective must be unchanged then.
        """
        ...


class SelfContained:
    """Base of objectives that keep no state between steps."""

    lr_multipliers: Mapping[nn.Module, float] = MappingProxyType({})

    def before_step(self, step: int) -> Mapping[str, float]:
        return {}

    def after_step(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        pass
