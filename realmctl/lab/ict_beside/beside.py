"""Two objectives that train the same weights: in every step, the losses of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from realmctl.execution import processes
from realmctl.training.objective import Around, Objective, Sums


@dataclass(frozen=True)
class PartOf:
    """A micro-batch of one of the two. share: its share of the number of micro-batches of this objective, of all processes."""

    objective: Objective[Any]
    part: Any
    share: float


class Beside(Around[PartOf]):
    """The objective `inner`, with `weight` times the loss of another one.

    Args:
        inner: The objective. What it does beside the steps is done; its metrics keep their names.
        other: The other one, which keeps no state. Its modules are among those of `inner`.
        weight: Factor of its loss.
        name: The metrics of the other one are logged as NAME_loss, NAME_accuracy and so on.
    """

    def __init__(self, inner: Objective[Any], other: Objective[Any], weight: float, name: str) -> None:
        super().__init__(inner)
        self.other, self.weight, self.name = other, weight, name
        self.chance += weight * other.chance
        self.chance_is_exact = self.chance_is_exact and other.chance_is_exact

    def draw(self, step: int) -> Sequence[PartOf]:
        return [*_parts_of(self.other, step), *_parts_of(self.inner, step)]

    def loss(self, part: PartOf) -> tuple[Tensor | None, Sums]:
        loss, sums = part.objective.loss(part.part)
        if part.objective is self.inner or loss is None:
            return loss, sums
        named = {f"{self.name}_{name}": pair for name, pair in sums.items()}
        return self.weight * loss, {f"{self.name}_loss": (loss.detach(), part.share), **named}


def _parts_of(objective: Objective[Any], step: int) -> list[PartOf]:
    parts = objective.draw(step)
    return [PartOf(objective, part, 1 / (len(parts) * processes.world_size())) for part in parts]
