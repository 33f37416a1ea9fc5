"""The interface between the training loop and an objective."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

Sums = Mapping[str, tuple[float | Tensor, float | Tensor]]
"""{metric: (sum, count)} of one micro-batch. The loop adds up the micro-batches of a batch and divides sum by count. Scalar tensors on
the device stay there until the step is over: to read one means to wait for the device."""


Part = TypeVar("Part")
"""A micro-batch of an objective."""


class Objective(Protocol[Part]):
    """Modules, data and loss of one kind of training. A step uses one batch, which has one or more micro-batches, `Part`."""

    modules: nn.ModuleDict

    @property
    def chance(self) -> float:
        """The loss of guessing without a look at the input, in nats. 0 where it is not known."""
        ...

    @property
    def chance_is_exact(self) -> bool:
        """Whether a model that tells nothing apart has exactly this loss."""
        ...

    @property
    def lr_multipliers(self) -> Mapping[nn.Module, float]:
        """{module: factor} for the modules whose learning rate differs from the schedule's."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the run ends before its last step. It is the same in all processes, and in a run that was resumed."""
        ...

    def draw(self, step: int) -> Sequence[Part]:
        """Return the micro-batches of step `step` (from 0). Their losses add up to the loss of the batch."""
        ...

    def loss(self, part: Part) -> tuple[Tensor | None, Sums]:
        """Return the loss of a micro-batch, a scalar (None: it has nothing to learn from), and its metrics."""
        ...

    def before_step(self, step: int) -> Mapping[str, Any]:
        """Prepare the next draw, after `step` steps. Return metrics to log with the step."""
        ...

    def after_step(self, line: Mapping[str, object]) -> Mapping[str, Any]:
        """Process the metrics of a step. Return further metrics to log."""
        ...

    def at_end(self, step: int) -> Mapping[str, Any]:
        """Measure the weights after the last step; `step` are taken. Return metrics to log in a line of their own, if any."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the JSON state that a checkpoint must keep in addition to the weights."""
        ...

    def restore(self, state: Mapping[str, object]) -> None:
        """Restore what `state` returned.

        Raises:
            InputError: A file that the state names is missing or damaged. The objective must be unchanged then.
        """
        ...


class SelfContained:
    """Base of objectives that keep no state between steps."""

    chance: float = 0.0
    chance_is_exact: bool = True
    finished: bool = False

    lr_multipliers: Mapping[nn.Module, float] = MappingProxyType({})

    def before_step(self, step: int) -> Mapping[str, Any]:
        return {}

    def after_step(self, line: Mapping[str, object]) -> Mapping[str, Any]:
        return {}

    def at_end(self, step: int) -> Mapping[str, Any]:
        return {}

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, object]) -> None:
        pass


class Around(Generic[Part]):
    """Base of objectives that are another one, `inner`, and do something beside its steps."""

    def __init__(self, inner: Objective[Part]) -> None:
        self.inner, self.modules, self.lr_multipliers = inner, inner.modules, inner.lr_multipliers
        self.chance, self.chance_is_exact = inner.chance, inner.chance_is_exact

    @property
    def finished(self) -> bool:
        return self.inner.finished

    def draw(self, step: int) -> Sequence[Part]:
        return self.inner.draw(step)

    def loss(self, part: Part) -> tuple[Tensor | None, Sums]:
        return self.inner.loss(part)

    def before_step(self, step: int) -> Mapping[str, Any]:
        return self.inner.before_step(step)

    def after_step(self, line: Mapping[str, object]) -> Mapping[str, Any]:
        return self.inner.after_step(line)

    def at_end(self, step: int) -> Mapping[str, Any]:
        return self.inner.at_end(step)

    def state(self) -> dict[str, Any]:
        return self.inner.state()

    def restore(self, state: Mapping[str, object]) -> None:
        self.inner.restore(state)


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
