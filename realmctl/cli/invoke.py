"""How a command ends: its result on stdout, its errors as one paragraph and an exit code."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import typer

from realmctl import log
from realmctl.cli.options import Quiet
from realmctl.errors import explained
from realmctl.execution import processes

SCHEMA_VERSION = 1


def exit_code(work: Callable[[], Any]) -> int:
    """Do `work`, and say what went wrong in one paragraph. A bug keeps its traceback."""
    try:
        code = work()
        sys.stdout.flush()
        return int(code or 0)
    except KeyboardInterrupt:
        print("error: interrupted. Run the same command again; resumable stages go on.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        known = explained(error)
        if known is None:
            raise
        print("error:", " ".join(str(known).splitlines()), file=sys.stderr)
        return known.exit_code


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with `--quiet`, leaving with the documented exit code."""

    @functools.wraps(command)
    def run(quiet: bool, **values: Any) -> None:
        log.set_quiet(quiet or not processes.is_first())
        raise typer.Exit(exit_code(lambda: command(**values)))

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [*own, inspect.Parameter("quiet", keyword, default=False, annotation=Quiet)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def escaped(text: str) -> str:
    """Text as it stands, where rich would take [this] for a style."""
    return re.sub(r"(\\*)(\[[a-z#/@][^[]*?\])", r"\1\1\\\2", text)


def emit(value: Any, as_json: bool, text: Callable[[Any], str]) -> None:
    """The result on stdout: one JSON object, or its text."""
    print(json.dumps({"schema_version": SCHEMA_VERSION, **value}) if as_json else text(value))
