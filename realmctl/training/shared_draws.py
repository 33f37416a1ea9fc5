"""Draws of data that depend on one random stream for the whole batch, divided among the processes.

Drawing an example advances the random stream by an amount that only the draw itself knows, so nobody can draw its own part
of a batch alone. Instead each of N processes draws one of N steps in a row, and they exchange what they drew. A process
does a share of the work, and the examples are those that one process draws.
"""

from __future__ import annotations

from collections.abc import Callable

from realmctl.execution import processes
from realmctl.spans.query import Query, from_numbers, to_numbers
from realmctl.training import data_parallel


class SharedDraws:
    """The queries of the whole batch of each step.

    Args:
        draw: Returns the batch of a step. It must depend on the step alone.
    """

    def __init__(self, draw: Callable[[int], list[Query]]) -> None:
        self._draw = draw
        self._drawn: dict[int, list[Query]] = {}

    def of(self, step: int) -> list[Query]:
        """Return the batch of a step. All processes must ask for the same step."""
        if processes.world_size() == 1:
            return self._draw(step)
        if step not in self._drawn:
            own = to_numbers(self._draw(step + processes.rank()))
            self._drawn = dict(enumerate(map(from_numbers, data_parallel.gather_rows(own)), step))
        return self._drawn[step]
