"""The end of a command: its result on stdout, an error as one paragraph on stderr, and an exit code."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import typer

from realmctl import log
from realmctl.cli.options import Quiet
from realmctl.errors import as_realmctl_error
from realmctl.execution import processes

T = TypeVar("T")
SCHEMA_VERSION = 1
"""Version of the JSON that `--json` prints."""


def exit_code_of(work: Callable[[], Any]) -> int:
    """Run `work` and return its exit code. A known error is printed as one paragraph; a bug is raised."""
    try:
        code = work()
        sys.stdout.flush()
        return int(code or 0)
    except KeyboardInterrupt:
        print("error: interrupted. Run the same command again; a resumable stage continues.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        known = as_realmctl_error(error)
        if known is None:
            raise
        which = f"{processes.name()}: " if processes.world_size() > 1 else ""
        print("error:", which + _printable(" ".join(str(known).splitlines())), file=sys.stderr)
        return known.exit_code


def _printable(text: str) -> str:
    """The text with escapes for characters that the encoding of stderr does not have."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def with_exit_code(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with the option `--quiet`. The returned function leaves with the documented exit code."""

    @functools.wraps(command)
    def run(quiet: bool, **values: Any) -> None:
        log.set_quiet(quiet or not processes.is_first())
        raise typer.Exit(exit_code_of(lambda: command(**values)))

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [*own, inspect.Parameter("quiet", keyword, default=False, annotation=Quiet)]
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
    print(json.dumps(found, default=dataclasses.asdict) if as_json else text(value))
