"""Options that every command has, or every stage. Each has one meaning and one help text."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from realmctl.cli.help import EVERY
from realmctl.pipeline import help_texts

OUTPUT = "Output"
"""Panel of where and how the result is written."""


def path(value: str | Path) -> Path:
    """Convert a value of the command line to a path. Raises a usage error if it is empty."""
    text = str(value)
    if not text.strip() or "\0" in text:
        raise typer.BadParameter("a path cannot be empty")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise typer.BadParameter(f"{text}: {error}. Write the whole path.") from None


def text(value: str) -> str:
    """Check a text of the command line. Raises a usage error if its bytes are not in the encoding of the locale."""
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise typer.BadParameter(f"{value!a} is not valid text. Write it in the encoding of the terminal (UTF-8).")
    return value


Function = TypeVar("Function", bound=Callable[..., None])


def computes(command: Function) -> Function:
    """Mark a command that computes with PyTorch. It gets the option `--threads`."""
    command.computes = True  # type: ignore[attr-defined]
    return command


_output = functools.partial(typer.Option, rich_help_panel=OUTPUT)
Workspace = Annotated[
    Path,
    _output("--workspace", "-w", envvar="REALMCTL_WORKSPACE", parser=path, help=help_texts.WORKSPACE),
]
Json = Annotated[bool, _output("--json", help="Print one JSON object.")]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        rich_help_panel="Compute",
        show_default=False,
        help="Number of threads of arithmetic on the CPU. Default: OMP_NUM_THREADS, else the cores that are free.",
    ),
]
Quiet = Annotated[bool, _output("--quiet", "-q", help="Print only errors on stderr.")]
DryRun = Annotated[bool, _output("--dry-run", help=help_texts.DRY_RUN)]
Yes = Annotated[bool, _output("--yes", "-y", help="Start also what takes more than a day.")]
Out = Annotated[Path | None, _output("--out", "-o", parser=path, help=help_texts.OUT)]


def _show_all(context: typer.Context, wanted: bool) -> None:
    """Print the help with all options, and leave."""
    if wanted and not context.resilient_parsing:
        context.meta[EVERY] = True
        typer.echo(context.get_help())
        raise typer.Exit()


HelpAll = Annotated[
    bool,
    _output(
        "--help-all",
        is_eager=True,
        callback=_show_all,
        help="Show all options, those too that few people set, and exit.",
    ),
]
