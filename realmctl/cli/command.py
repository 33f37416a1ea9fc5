"""The command of a stage, and of what else is declared by settings: the fields become options.

A stage prints the path of its artifact on stdout; another command prints what its `run` shows.
"""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from realmctl import log, registry
from realmctl.artifacts import Artifact, catalogue
from realmctl.cli import completion
from realmctl.cli.help import escape_markup
from realmctl.cli.invoke import print_result
from realmctl.cli.options import DryRun, Json, Out, Workspace, Yes, computes, path, text
from realmctl.errors import ConfigError, QualityError
from realmctl.execution import processes
from realmctl.pipeline import ROLE, Command, Role, Settings, Stage, flag_of, hints, planning, presets, roles
from realmctl.pipeline.fields import MOST, heeded
from realmctl.pipeline.removed import refuse
from realmctl.pipeline.workspace import with_defaults

ARGUMENT = "_argument"
"""Suffix of the hidden positional twin of an option."""
PANELS = {
    "argument": "Arguments",
    "reads": "Inputs",
    "source": "Inputs",
    "setting": "Settings",
    "runtime": "Compute",
    "output": "Output",
}
"""{role: panel of the help}, in this order."""
RECIPE = "Settings (part of the recipe)"
"""Panel of the settings of a stage."""


def command_of(kind: type[Stage] | type[Command]) -> Callable[..., None]:
    """Return the function that Typer turns into the command. Its attribute `advanced` names the options that `--help` leaves out."""
    run, more = _stage(kind) if issubclass(kind, Stage) else _other(kind)
    known = roles(kind)
    items = sorted(fields(kind), key=lambda item: _place(_panel(kind, item)))
    run.advanced = {name for name, role in known.items() if role.advanced}  # type: ignore[attr-defined]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(_parameter(kind, item) for item in items),
            *(_argument(item) for item in items if _has_argument(known[item.name])),
            *more,
        ]
    )
    return run


_keyword = functools.partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)


def _stage(stage: type[Stage]) -> tuple[Callable[..., None], list[inspect.Parameter]]:
    """Return what a stage's command does, and the options that every stage has."""

    def run(workspace: Path, out: Path | None, json: bool, dry_run: bool, yes: bool = False, **values: Any) -> None:
        name = values.pop("preset", None)  # its callback has set the defaults of the other options
        preset = presets.settings_of(name, stage.command()) if name else {}
        given = _given(values)
        refuse(stage.command(), given)
        named = [field for field, value in given.items() if value != preset.get(field, ...)]
        made = stage(**with_defaults(stage, heeded(stage, given, named), workspace))
        for name, artifact in made.inputs().items():
            what = f"{artifact.kind} {artifact.content[:12]}"
            log.say(f"{stage.command()}: {flag_of(name)} {artifact.path} ({what})")
        series = out or workspace / stage.makes
        if dry_run:
            print_result(planning.plan(made, series, measure=True), json, planning.stage_plan_text)
        else:
            planning.tell_days(made, series, yes or not sys.stdin.isatty())
            try:
                _tell(stage, made.make(series), json)
            except QualityError as error:
                if isinstance(error.made, Artifact):
                    _tell(stage, error.made, json)
                raise

    if "device" in roles(stage):
        computes(run)
    return run, [
        *_preset(stage.command()),
        _keyword("out", default=None, annotation=Out),
        _keyword("workspace", default=Path("artifacts"), annotation=Workspace),
        _keyword("json", default=False, annotation=Json),
        _keyword("dry_run", default=False, annotation=DryRun),
        *([_keyword("yes", default=False, annotation=Yes)] if stage.may_take_days is not Stage.may_take_days else []),
    ]


def _tell(stage: type[Stage], made: Artifact, json: bool) -> None:
    if processes.is_first():
        entry = {"command": stage.command(), **catalogue.summary(made)}
        print_result(entry, json, lambda value: str(value["path"]))


def _other(command: type[Command]) -> tuple[Callable[..., None], list[inspect.Parameter]]:
    """Return what a command does that makes no artifact, and the option that each has."""

    def run(json: bool, **values: Any) -> None:
        def show(value: Any, text: Callable[[Any], str] | None) -> None:
            if json or text:
                print_result(value, json, text or str)

        command(**_given(values)).run(show)

    if command.computes:
        computes(run)
    return run, [_keyword("json", default=False, annotation=Json)]


def _given(values: Mapping[str, object]) -> dict[str, Any]:
    """Return the values of the fields as their types have them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in _joined(values).items()}


def _panel(kind: type[Settings], item: Field[Any]) -> str:
    """Return the panel of an option: its own, that of the room that adds it, or that of its role."""
    role: Role = item.metadata[ROLE]
    owner = next(base for base in kind.__mro__ if item.name in inspect.get_annotations(base))
    room = registry.room_of(owner.__module__)
    if room and room != registry.room_of(kind.__module__):
        return registry.title_of(room)
    return role.panel or (RECIPE if role.name == "setting" and issubclass(kind, Stage) else PANELS[role.name])


def _place(panel: str) -> tuple[int, str]:
    """Return a key that sorts panels: panels of rooms, and those with titles of their own, stand behind the settings."""
    usual = list(dict.fromkeys(PANELS.values()))
    settings = usual.index(PANELS["setting"])
    return (settings, "") if panel == RECIPE else (usual.index(panel), "") if panel in usual else (settings, panel)


def _parameter(kind: type[Settings], item: Field[Any]) -> inspect.Parameter:
    role: Role = item.metadata[ROLE]
    hint: Any = hints(kind)[item.name]
    default = inspect.Parameter.empty if item.default is MISSING else item.default
    if role.name == "reads":
        hint, default = Path | None, None
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        chosen = typing.get_origin(inner) is typing.Literal  # several names in one value, separated by commas
        hint = list[str] if chosen else list[inner]  # type: ignore[valid-type]
        default = list(default) if isinstance(default, tuple) else default
    parser = path if Path in (kinds := (hint, *typing.get_args(hint))) else text if str in kinds else None
    if role.positional and not _has_argument(role):
        info: Any = typer.Argument(
            help=escape_markup(role.help),
            show_default=False,
            parser=parser,
            autocompletion=completion.artifacts() if role.completes else None,
        )
    else:
        flag, no = flag_of(item.name), f"--no-{item.name.replace('_', '-')}"
        names = [f"{flag}/{no}" if bool in kinds else flag, *([role.short] if role.short else [])]
        choices = role.choices() if role.choices else ()
        info = typer.Option(
            *names,
            help=escape_markup(_help(item.name, role) + _of_the_paper(kind, item)),
            rich_help_panel=_panel(kind, item),
            parser=parser,
            metavar=f"<{'|'.join(choices)}>" if choices else None,
            hidden=len(choices) == 1,  # nothing to choose until a room or a package offers another
            envvar=role.environment or None,
            autocompletion=_completed(role),
        )
    annotation = Annotated[hint, info]
    return inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _has_argument(role: Role) -> bool:
    return role.name == "reads" and role.positional


def _argument(item: Field[Any]) -> inspect.Parameter:
    """Return the argument that an artifact can be named by, in place of its option."""
    role: Role = item.metadata[ROLE]
    info = typer.Argument(
        help=f"The same as {flag_of(item.name)}.",
        metavar=item.name.upper(),
        show_default=False,
        parser=path,
        autocompletion=_completed(role),
    )
    return _keyword(item.name + ARGUMENT, default=None, annotation=Annotated[Path | None, info])


def _joined(values: Mapping[str, object]) -> dict[str, Any]:
    """Return the values of the fields. An artifact may be named by its option or by its argument.

    Raises:
        ConfigError: both are given.
    """
    joined = {name: value for name, value in values.items() if not name.endswith(ARGUMENT)}
    for name in (name.removesuffix(ARGUMENT) for name, value in values.items() if name.endswith(ARGUMENT) and value):
        if joined[name] is not None:
            raise ConfigError(
                f"{flag_of(name)} {joined[name]}: {values[name + ARGUMENT]} names it too. Give one of them."
            )
        joined[name] = values[name + ARGUMENT]
    return joined


def _completed(role: Role) -> completion.Completion | None:
    """Return the completion of a field's values; None where the shell completes paths."""
    if role.name == "reads":
        return completion.artifacts(*role.kinds)
    return completion.choices(role.choices) if role.choices else None


def _preset(command: str) -> list[inspect.Parameter]:
    """Return the option `--preset`, if some preset has settings for the stage.

    Typer reads it first. It changes the defaults of the other options.
    """
    names = presets.names_for(command)

    def set_defaults(context: typer.Context, name: str | None) -> str | None:
        if name is not None:
            context.default_map = dict(presets.settings_of(name, command))
        return name

    info = typer.Option(
        "--preset",
        help=f"Settings of a paper for options that are not given: {', '.join(names)}.",
        rich_help_panel=RECIPE,
        is_eager=True,
        callback=set_defaults,
        autocompletion=completion.choices(lambda: names),
    )
    annotation = Annotated[str | None, info]
    return [_keyword("preset", default=None, annotation=annotation)] if names else []


def _of_the_paper(kind: type[Settings], item: Field[Any]) -> str:
    """Say that a default is the paper's, if it is."""
    marked = issubclass(kind, Stage) and presets.is_of_the_paper(kind.command(), item.name, item.default)
    return " The default is the paper's." if marked else ""


def _help(name: str, role: Role) -> str:
    if role.instead_of:
        return f"{role.help} Default: the model's own, or the newest of <workspace>/index that fits newer blocks."
    if role.name != "reads" or role.explicit_only:
        limits = replace(role.range, at_most=None) if (role.range.at_most or 0) >= MOST else role.range
        told = limits.at_most is not None or limits.below is not None or (limits.at_least or 0) > 1
        return f"{role.help} {str(limits).capitalize()}." if told else role.help
    where = f"<workspace>/{name.replace('_', '-')}"
    return f"{role.help} Default: {where}{', if it exists' if role.optional else ''}."
