"""Draws of data that depend on one random stream for the whole batch, divided among the processes.

Drawing an example advances the random stream by an amount that only the draw itself knows, so nobody can draw its own part
of a batch alone. Instead each of N processes draws one of N steps in a row, and they exchange the draws as numbers. A process
does a share of the work, and the examples are those that one process draws.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from realmctl.execution import processes
from realmctl.training import data_parallel


class SharedDraws:
    """The whole batch of each step, as int64 numbers.

    Args:
        draw: Returns the batch of a step. It must depend on the step alone.
    """

    def __init__(self, draw: Callable[[int], NDArray[np.int64]]) -> None:
        self._draw = draw
        self._drawn: dict[int, NDArray[np.int64]] = {}

    def of(self, step: int) -> NDArray[np.int64]:
        """Return the batch of a step. All processes must ask for the same step."""
        if processes.world_size() == 1:
            return self._draw(step)
        if step not in self._drawn:
            own = self._draw(step + processes.rank())
            self._drawn = dict(enumerate(data_parallel.gather_rows(own), step))
        return self._drawn[step]
