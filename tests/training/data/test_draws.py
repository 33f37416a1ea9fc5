"""Draws that the processes divide among them: the same examples, and each process draws its share of the steps."""

from __future__ import annotations

import numpy as np
import pytest

from realmctl.execution import processes
from realmctl.spans.query import Query, from_numbers, hide, to_numbers
from realmctl.training import data_parallel
from realmctl.training.data.draws import SharedDraws


def batch(step: int) -> list[Query]:
    return [hide(np.arange(step, step + 3 + step % 2), [1], 4)]


def same(one: list[Query], other: list[Query]) -> bool:
    return to_numbers(one).tolist() == to_numbers(other).tolist()


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_each_process_draws_one_of_three_steps(monkeypatch, rank):
    drawn: list[int] = []
    at = 0

    def gather(own: np.ndarray) -> list[np.ndarray]:
        assert same(from_numbers(own), batch(at + rank))
        return [to_numbers(batch(at + other)) for other in range(3)]

    monkeypatch.setattr(processes, "world_size", lambda: 3)
    monkeypatch.setattr(processes, "rank", lambda: rank)
    monkeypatch.setattr(data_parallel, "gather_rows", gather)
    draws = SharedDraws(lambda step: drawn.append(step) or batch(step))
    at = 4
    for step in range(4, 13):  # a run that continues after step 4
        at = step if (step - 4) % 3 == 0 else at
        assert same(draws.of(step), batch(step))
    assert drawn == [4 + rank, 7 + rank, 10 + rank]


def test_one_process_draws_every_step():
    assert same(SharedDraws(batch).of(7), batch(7))
