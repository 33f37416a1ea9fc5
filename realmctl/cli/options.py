"""Options that several commands share, with one meaning and one help text each."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import typer


def path(value: str | Path) -> Path:
    """A path from the command line or a default. Raises a usage error for one that is empty."""
    text = str(value)
    if not text.strip() or "\0" in text:
        raise typer.BadParameter("a path cannot be empty")
    return Path(text)


_output = functools.partial(typer.Option, rich_help_panel="Output")
WORKSPACE_HELP = "Where inputs and outputs lie unless named."
OUT_HELP = "Series to write to. Default: <workspace>/<kind>."
Workspace = Annotated[
    Path,
    _output("--workspace", "-w", envvar="REALMCTL_WORKSPACE", parser=path, help=WORKSPACE_HELP),
]
Json = Annotated[bool, _output("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, _output("--quiet", "-q", help="Nothing on stderr but errors.")]
DryRun = Annotated[bool, _output("--dry-run", help="Print the plan and do nothing.")]
Out = Annotated[Path | None, _output("--out", "-o", parser=path, help=OUT_HELP)]
RegexAnswers = Annotated[
    bool | None,
    typer.Option(
        "--regex-answers/--no-regex-answers", help="Answers are regular expressions; default as the format says."
    ),
]
AnswerField = Annotated[str | None, typer.Option(help="Field that holds the answers, such as EfficientQA's.")]
Series = typer.Argument(parser=path, help="A series (its newest version) or one version.")
