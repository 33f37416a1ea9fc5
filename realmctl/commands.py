"""A stage as a command: its fields become options, its result one line on stdout, its errors exit codes."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import sys
import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from realmctl import catalogue, log, planning, presets, processes
from realmctl.errors import explained
from realmctl.stage import ROLE, Role, Stage, flag_of, hints

SCHEMA_VERSION = 1
PANELS = {
    "reads": "Inputs",
    "source": "Inputs",
    "setting": "Settings (part of the recipe)",
    "knob": "Compute",
}


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
        log.set_quiet(quiet or not processes.first())
        raise typer.Exit(exit_code(lambda: command(**values)))

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [*own, inspect.Parameter("quiet", keyword, default=False, annotation=Quiet)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def command_of(stage: type[Stage]) -> Callable[..., None]:
    """The function that Typer turns into the stage's command."""

    def run(workspace: Path, out: Path | None, json: bool, dry_run: bool, **values: Any) -> None:
        values.pop("preset", None)  # it has given its defaults
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        made = stage(**planning.with_defaults(stage, given, workspace))
        for name, artifact in made.inputs().items():
            what = f"{artifact.kind} {artifact.content[:12]}"
            log.say(f"{stage.command()}: {flag_of(name)} {artifact.path} ({what})")
        series = out or workspace / stage.makes
        if dry_run:
            emit(planning.plan(made, series), json, planning.plan_text)
        else:
            entry = {"command": stage.command(), **catalogue.summary(made.make(series))}
            if processes.first():
                emit(entry, json, lambda value: str(value["path"]))

    keyword = functools.partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(_parameter(item, hints(stage)[item.name]) for item in fields(stage)),  # type: ignore[arg-type]
            *_preset(stage.command()),
            keyword("out", default=None, annotation=Out),
            keyword("workspace", default=Path("artifacts"), annotation=Workspace),
            keyword("json", default=False, annotation=Json),
            keyword("dry_run", default=False, annotation=DryRun),
        ]
    )
    return run


def _parameter(item: Field[Any], hint: Any) -> inspect.Parameter:
    role: Role = item.metadata[ROLE]
    default = inspect.Parameter.empty if item.default is MISSING else item.default
    if role.name == "reads":
        hint, default = Path | None, None
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        chosen = typing.get_origin(inner) is typing.Literal  # the names may come with commas
        hint = list[str] if chosen else list[inner]  # type: ignore[valid-type]
        default = list(default) if isinstance(default, tuple) else default
    parser = path if Path in (hint, *typing.get_args(hint)) else None
    if role.positional:
        info: Any = typer.Argument(help=escaped(role.help), show_default=False, parser=parser)
    else:
        flag, no = flag_of(item.name), f"--no-{item.name.replace('_', '-')}"
        name = f"{flag}/{no}" if bool in (hint, *typing.get_args(hint)) else flag
        text = escaped(_help(item.name, role))
        info = typer.Option(name, help=text, rich_help_panel=PANELS[role.name], parser=parser)
    annotation = Annotated[hint, info]
    return inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _preset(command: str) -> list[inspect.Parameter]:
    """`--preset` of a stage that some preset concerns: read first, it changes the defaults of the other options."""
    names = presets.names_for(command)

    def give_defaults(context: typer.Context, name: str | None) -> str | None:
        if name is not None:
            context.default_map = dict(presets.settings_of(name, command))
        return name

    text = f"Settings of a paper, where they are not given: {', '.join(names)}."
    info = typer.Option("--preset", help=text, rich_help_panel=PANELS["setting"], is_eager=True, callback=give_defaults)
    annotation = Annotated[str | None, info]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter("preset", keyword, default=None, annotation=annotation)] if names else []


def _help(name: str, role: Role) -> str:
    if role.name != "reads" or role.named:
        return role.help
    where = f"<workspace>/{name.replace('_', '-')}"
    return f"{role.help} Default: {where}{', if there is one' if role.optional else ''}."


def escaped(text: str) -> str:
    """Text as it stands, where rich would take [this] for a style."""
    return re.sub(r"(\\*)(\[[a-z#/@][^[]*?\])", r"\1\1\\\2", text)


def emit(value: Any, as_json: bool, text: Callable[[Any], str]) -> None:
    """The result on stdout: one JSON object, or its text."""
    print(json.dumps({"schema_version": SCHEMA_VERSION, **value}) if as_json else text(value))
