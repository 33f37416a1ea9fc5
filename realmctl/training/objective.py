"""What the training loop asks of an objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from torch import Tensor, nn

Sums = Mapping[str, tuple[float, float]]
"""{metric: (sum, count)} of a part; the loop divides what the parts of a batch add up to."""


class Objective(Protocol):
    """What is trained. One step is one batch, drawn by step number, in one part or several (micro-batches)."""

    modules: nn.ModuleDict

    @property
    def lr_multipliers(self) -> Mapping[nn.Module, float]:
        """{module: factor} of the modules that learn faster or slower than the rest."""
        ...

    def draw(self, step: int) -> Sequence[Any]:
        """The parts of the batch of step `step` (from 0). Their losses add up to the batch's."""
        ...

    def loss(self, part: Any) -> tuple[Tensor | None, Sums]:
        """The part's loss (None: nothing to learn from), and {metric: (sum, count)}, averaged over the batch."""
        ...

    def before_step(self, step: int) -> Mapping[str, float]:
        """Called before each draw; what it returns is logged with the step."""
        ...

    def after_step(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Called with all that is logged of a step; what it returns is logged too."""
        ...

    def state(self) -> dict[str, Any]:
        """JSON that a checkpoint must keep beside the weights."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` returned."""
        ...


class SelfContained:
    """Base of objectives that need nothing between steps."""

    lr_multipliers: Mapping[nn.Module, float] = MappingProxyType({})

    def before_step(self, step: int) -> Mapping[str, float]:
        return {}

    def after_step(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        pass
