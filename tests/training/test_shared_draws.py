"""Draws that the processes divide among them: the same examples, and each process draws its share of the steps."""

from __future__ import annotations

import numpy as np
import pytest

from realmctl.execution import processes
from realmctl.training import data_parallel
from realmctl.training.objectives.mlm import Masked, packed, unpacked
from realmctl.training.shared_draws import SharedDraws


def batch(step: int) -> np.ndarray:
    return np.arange(step, step + 3 + step % 2)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_each_process_draws_one_of_three_steps(monkeypatch, rank):
    drawn: list[int] = []
    at = 0

    def gather(own: np.ndarray) -> list[np.ndarray]:
        assert (own == batch(at + rank)).all()
        return [batch(at + other) for other in range(3)]

    monkeypatch.setattr(processes, "world_size", lambda: 3)
    monkeypatch.setattr(processes, "rank", lambda: rank)
    monkeypatch.setattr(data_parallel, "gather_rows", gather)
    draws = SharedDraws(lambda step: drawn.append(step) or batch(step))
    at = 4
    for step in range(4, 13):  # a run that continues after step 4
        at = step if (step - 4) % 3 == 0 else at
        assert (draws.of(step) == batch(step)).all()
    assert drawn == [4 + rank, 7 + rank, 10 + rank]


def test_one_process_draws_every_step():
    assert (SharedDraws(batch).of(7) == batch(7)).all()


def test_examples_survive_the_exchange():
    one = Masked(np.array([7, 8, 9]), None, [(0, 1, 5)])
    two = Masked(np.array([1]), np.array([2, 3]), [(0, 0, 4), (1, 1, 6)])
    empty = Masked(np.empty(0, np.int64), np.empty(0, np.int64), [])
    for mine, theirs in zip(unpacked(packed([one, two, empty])), [one, two, empty], strict=True):
        assert mine.hidden == theirs.hidden and mine.first.tolist() == theirs.first.tolist()
        assert (mine.second is None) == (theirs.second is None)
        assert mine.second is None or (theirs.second is not None and mine.second.tolist() == theirs.second.tolist())
