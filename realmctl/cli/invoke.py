"""The end of a command: its result on stdout, an error as one paragraph on stderr, and an exit code."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import json
import os
import select
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import typer

from realmctl import log, registry
from realmctl.cli.options import HelpAll, Quiet, Threads
from realmctl.errors import (
    BROKEN_PIPE,
    INTERRUPTED,
    InputError,
    StoppedBySignal,
    at_the_end,
    interruption,
    is_panic,
)
from realmctl.execution import processes
from realmctl.execution.cores import use_free_cores, use_threads
from realmctl.execution.signals import forget_stops, interruption_behind

T = TypeVar("T")
SCHEMA_VERSION = 1
"""Version of the JSON that `--json` prints."""


def exit_code_of(work: Callable[[], Any]) -> int:
    """Run `work` and return its exit code. A known error is printed as one paragraph; a bug is raised."""
    forget_stops()
    try:
        code = work()
        sys.stdout.flush()
        return int(code or 0)
    except KeyboardInterrupt as stop:
        return _told(stop)
    except SystemExit as left:
        if isinstance(left.__context__, BrokenPipeError):  # rich, which prints the help, has met it
            return BROKEN_PIPE
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        if behind := interruption_behind(error):
            return _told(behind)
        if isinstance(error, BrokenPipeError) and _has_no_reader(sys.stdout):
            _give_up_stdout()
            return BROKEN_PIPE
        known = at_the_end(error, "stdout" if isinstance(error, OSError) and _is_of_stdout() else "")
        if known is None:
            if registry.used:
                error.add_note(f"This run used {', '.join(registry.used)}: what one of them returns may be wrong.")
            raise
        which = f"{processes.name()}: " if processes.world_size() > 1 else ""
        text = log.printable(" ".join(str(known).splitlines()))
        sys.stderr.write(f"error: {which}{text}\n")  # at once, because torchrun's processes share one stderr
        return known.exit_code


def _told(stop: KeyboardInterrupt) -> int:
    print(f"error: {interruption(stop)}", file=sys.stderr)
    return stop.exit_code if isinstance(stop, StoppedBySignal) else INTERRUPTED


def _is_of_stdout() -> bool:
    """Whether stdout cannot be written. What is left in its buffer is dropped then, so that Python does not try again."""
    try:
        sys.stdout.flush()
    except OSError:
        _give_up_stdout()
        return True
    return False


def _has_no_reader(stream: IO[str]) -> bool:
    """Whether a stream is a pipe or a socket that nobody reads any more. Another broken pipe is one to a process that this command started."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a descriptor
        asked = select.poll()
        asked.register(stream.fileno(), 0)
        return bool(asked.poll(0))
    return False


def _give_up_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _require_working_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError(
            "the folder in which the command runs was deleted. Change to a folder that exists, for instance with cd."
        ) from None


def with_exit_code(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with the options `--quiet` and `--help-all`, and with `--threads` if it `computes`.

    The returned function leaves with the documented exit code.
    """
    computes = getattr(command, "computes", False)

    @functools.wraps(command)
    def run(quiet: bool, help_all: bool, **values: Any) -> None:
        log.set_quiet(quiet or not processes.is_first())
        if computes:
            threads = values.pop("threads")
            use_threads(threads) if threads else use_free_cores()

        def work() -> None:
            _require_working_folder()
            command(**values)

        raise typer.Exit(exit_code_of(work))

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = inspect.signature(command, eval_str=True).parameters.values()
    threads = [inspect.Parameter("threads", keyword, default=None, annotation=Threads)] if computes else []
    quiet = inspect.Parameter("quiet", keyword, default=False, annotation=Quiet)
    help_all = inspect.Parameter("help_all", keyword, default=False, annotation=HelpAll)
    parameters = [*own, *threads, quiet, help_all]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def print_result(value: T, as_json: bool, text: Callable[[T], str]) -> None:
    """Print the result of a command on stdout.

    Args:
        value: The result: a mapping or a dataclass of JSON values and of dataclasses.
        as_json: Print one JSON object instead of text.
        text: Formats the result for people.
    """
    fields = value if isinstance(value, Mapping) else dataclasses.asdict(value)  # type: ignore[call-overload]
    found = {"schema_version": SCHEMA_VERSION, **fields}
    print(json.dumps(found, default=dataclasses.asdict) if as_json else log.printable(text(value)))
