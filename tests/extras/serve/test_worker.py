"""The worker computes together what waits together, and no call harms another."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from realmctl.extras.serve.worker import AT_ONCE, QueueFull, Worker

PATIENCE = 20


class Gate:
    """A computation that waits until it is opened, and remembers what it was given."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        self.batches: list[list[int]] = []

    def __call__(self, numbers):
        self.entered.set()
        assert self.opened.wait(PATIENCE)
        self.batches.append(list(numbers))
        return [10 // number for number in numbers]


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def worker(gate: Gate) -> Iterator[Worker]:
    """A worker that is busy with one call, so that further calls wait."""
    made = Worker(40)
    first = made.submit("first", gate, 1)
    assert gate.entered.wait(PATIENCE)
    yield made
    gate.opened.set()
    assert first.result(PATIENCE) == [10][0]
    made.stop()


def test_calls_of_one_kind_are_computed_together(worker, gate):
    replies = [worker.submit("divide", gate, number) for number in range(1, 41)]
    gate.opened.set()
    assert [reply.result(PATIENCE) for reply in replies] == [10 // number for number in range(1, 41)]
    assert max(map(len, gate.batches)) == worker.largest_batch == AT_ONCE
    assert [number for batch in gate.batches[1:] for number in batch] == list(range(1, 41))  # in order


def test_calls_of_several_kinds_are_computed_apart(worker, gate):
    replies = [worker.submit(number % 2, gate, number) for number in range(1, 7)]
    gate.opened.set()
    assert [reply.result(PATIENCE) for reply in replies] == [10 // number for number in range(1, 7)]
    assert gate.batches[1:] == [[1, 3, 5], [2, 4, 6]]


def test_a_bad_call_spoils_no_other(worker, gate):
    replies = [worker.submit("divide", gate, number) for number in (5, 0, 2)]
    gate.opened.set()
    assert (replies[0].result(PATIENCE), replies[2].result(PATIENCE)) == (2, 5)
    with pytest.raises(ZeroDivisionError):
        replies[1].result(PATIENCE)


def test_a_full_queue_refuses(worker, gate):
    replies = [worker.submit("divide", gate, 1) for _ in range(40)]
    assert worker.waiting == 40
    with pytest.raises(QueueFull):
        worker.submit("divide", gate, 1)
    gate.opened.set()
    assert [reply.result(PATIENCE) for reply in replies] == [10] * 40
    assert worker.submit("divide", gate, 2).result(PATIENCE) == 5


def test_a_call_that_was_given_up_is_not_computed(worker, gate):
    given_up, kept = worker.submit("divide", gate, 3), worker.submit("divide", gate, 2)
    assert given_up.cancel()
    gate.opened.set()
    assert kept.result(PATIENCE) == 5 and [3] not in gate.batches and [3, 2] not in gate.batches


def test_the_end_waits_for_what_waits():
    worker = Worker(40)
    replies = [worker.submit("double", lambda batch: [2 * number for number in batch], number) for number in range(40)]
    worker.stop()
    assert [reply.result(0) for reply in replies] == [2 * number for number in range(40)]
