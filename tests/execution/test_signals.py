"""Signals: the first asks, the second stops, and the handlers of others come back."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest
import torch

from realmctl.cli.invoke import exit_code_of
from realmctl.errors import InterruptedRun, ResourceError, StoppedBySignal
from realmctl.execution.signals import STOP_SIGNALS, asked_to_stop, deferred, install_stop_now, stop_now
from realmctl.pipeline import jobs


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def default_handlers():
    """No signal is ignored, as pytest's own parent may have left it."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "error"),
    [(number, KeyboardInterrupt if number == signal.SIGINT else InterruptedRun) for number in STOP_SIGNALS],
)
def test_the_first_signal_asks_and_the_second_stops(number, error):
    with deferred() as stop:
        assert not asked_to_stop() and stop.signal is None
        send(number)
        assert asked_to_stop() and stop.signal == number
        with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else StoppedBySignal):
            send(number)
        with pytest.raises(error):
            stop.leave("step 3 is saved")
    assert not asked_to_stop()


def test_leaving_says_what_was_saved():
    with deferred() as stop, pytest.raises(InterruptedRun, match="step 3") as error:
        send(signal.SIGTERM)
        stop.leave("step 3 is saved")
    assert error.value.exit_code == 75


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
def test_the_error_names_the_signal(number):
    with deferred() as stop, pytest.raises(InterruptedRun, match=number.name):
        send(number)
        stop.leave("step 3 is saved")


def test_an_ignored_signal_stays_ignored():
    """`nohup realmctl pretrain &` must survive the end of its terminal."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    install_stop_now()
    send(signal.SIGHUP)
    with deferred() as stop:
        send(signal.SIGHUP)
        assert stop.signal is None
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
def test_outside_of_training_every_stop_signal_is_handled(number):
    install_stop_now()
    with pytest.raises(StoppedBySignal, match=number.name) as stopped:
        send(number)
    assert stopped.value.exit_code == 75


def test_a_library_does_not_take_a_signal_for_a_failure_of_its_own():
    """PyTorch raises RuntimeError for every Exception that comes while it copies weights."""

    class Weights(torch.Tensor):
        def copy_(self, *_: object) -> None:
            stop_now(signal.SIGTERM, None)

    module = torch.nn.Linear(1, 1)
    module.register_parameter("weight", torch.nn.Parameter(Weights(torch.zeros(1, 1))))
    with pytest.raises(StoppedBySignal):
        module.load_state_dict({"weight": torch.zeros(1, 1), "bias": torch.zeros(1)})


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_that_a_library_replaces_by_an_error_of_its_own_still_ends_the_command(number, capsys):
    """PyTorch 2.13 raises ValueError without a cause where a signal comes while safetensors 0.8 makes a tensor."""

    def work() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            send(number)
        raise ValueError("could not determine the shape of object type 'torch.storage.UntypedStorage'")

    install_stop_now()
    assert exit_code_of(work) == (130 if number == signal.SIGINT else 75)
    assert "Run the same command again" in capsys.readouterr().err
    # the next command knows nothing of it
    with pytest.raises(ZeroDivisionError):
        exit_code_of(lambda: 1 // 0)


def test_handlers_come_back_even_after_an_error():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), deferred():
        raise ZeroDivisionError
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_the_innermost_block_is_the_one_that_is_asked():
    with deferred() as outer:
        with deferred() as inner:
            send(signal.SIGTERM)
            assert inner.signal and not outer.signal
        assert not asked_to_stop()
        send(signal.SIGTERM)
        assert outer.signal and asked_to_stop()


def test_another_thread_changes_nothing():
    found = []

    def elsewhere() -> None:
        with deferred() as stop:
            found.append((signal.getsignal(signal.SIGTERM), stop.signal, asked_to_stop()))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [(before, None, False)]


def test_outside_of_training_a_signal_stops_at_once():
    with pytest.raises(StoppedBySignal):
        stop_now(signal.SIGTERM, None)
    with pytest.raises(KeyboardInterrupt):
        stop_now(signal.SIGINT, None)


def test_a_signal_while_a_c_extension_is_imported_is_no_missing_package(monkeypatch):
    """Its initialisation makes an ImportError of the signal. The same in a process that makes stages for `run --jobs`."""

    def work(*_: object) -> None:
        try:
            try:
                stop_now(signal.SIGHUP, None)
            except StoppedBySignal as stop:
                raise ImportError("initialization failed") from stop
        except ImportError:
            raise ResourceError("hnswlib cannot be imported") from None

    assert exit_code_of(work) == 75
    monkeypatch.setattr(jobs, "_made", work)
    assert jobs._report({"quiet": False, "name": "index"})["exit_code"] == 75
