"""Options that several commands share. Each has one meaning and one help text."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer


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


_output = functools.partial(typer.Option, rich_help_panel="Output")
WORKSPACE_HELP = "Folder of the inputs and outputs whose path is not given."
OUT_HELP = "Series to write to. Default: <workspace>/<kind>."
Workspace = Annotated[
    Path,
    _output("--workspace", "-w", envvar="REALMCTL_WORKSPACE", parser=path, help=WORKSPACE_HELP),
]
Json = Annotated[bool, _output("--json", help="Print one JSON object.")]
Language = Annotated[
    str,
    typer.Option(
        help="Language of the documents: the code under which it has a Wikipedia, such as ko, or und for several. auto: what a dump says, or "
        "else English."
    ),
]
BadFiles = Annotated[
    Literal["fail", "skip"],
    typer.Option(
        help="What happens with a file that cannot be read, such as an image or a scanned PDF. skip: it is set aside, and a warning names it."
    ),
]
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
DryRun = Annotated[
    bool,
    _output(
        "--dry-run",
        help="Print the plan and make nothing. A part of the work is done in a temporary folder, to estimate time and memory.",
    ),
]
Out = Annotated[Path | None, _output("--out", "-o", parser=path, help=OUT_HELP)]
RegexAnswers = Annotated[
    bool | None,
    typer.Option(
        "--regex-answers/--no-regex-answers",
        help="Whether answers are regular expressions. Default: decided by the file's format.",
    ),
]
AnswerField = Annotated[
    str | None, typer.Option(help="Field that contains the answers, for a layout like EfficientQA's.")
]
