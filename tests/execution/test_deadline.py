from __future__ import annotations

import re
import signal
import threading
import time

import pytest

from realmctl.execution.deadline import DeadlineError, deadline


def spin() -> None:
    while True:
        pass


def test_a_loop_is_interrupted_on_the_main_thread():
    before = signal.getsignal(signal.SIGVTALRM)
    with pytest.raises(DeadlineError), deadline(0.05):
        spin()
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_a_regular_expression_is_interrupted_too():
    with pytest.raises(DeadlineError), deadline(0.05):
        re.match(r"(a+)+$", "a" * 60 + "b")


def test_a_loop_is_interrupted_on_another_thread():
    caught = []

    def work() -> None:
        try:
            with deadline(0.05):
                spin()
        except DeadlineError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert len(caught) == 1


def test_waiting_is_not_working():
    """A process that waits for its turn on a busy machine uses no CPU time, and neither does one that sleeps."""

    def wait(found: list[int]) -> None:
        with deadline(0.05):
            time.sleep(0.2)
        found.append(1)

    here: list[int] = []
    wait(here)
    there: list[int] = []
    thread = threading.Thread(target=wait, args=(there,))
    thread.start()
    thread.join(20)
    assert here == there == [1]


def test_quick_work_is_left_alone():
    def quick(found: list[int]) -> None:
        with deadline(0.05):
            found.append(1)
        time.sleep(0.1)
        found.append(2)

    here: list[int] = []
    quick(here)
    there: list[int] = []
    thread = threading.Thread(target=quick, args=(there,))
    thread.start()
    thread.join(20)
    assert here == there == [1, 2]
