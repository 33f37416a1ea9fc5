"""The command of a stage. The stage's fields become options, and the path of its artifact is printed on stdout."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from realmctl import log
from realmctl.artifacts import catalogue
from realmctl.cli import completion
from realmctl.cli.help import escape_markup
from realmctl.cli.invoke import print_result
from realmctl.cli.options import DryRun, Json, Out, Workspace, computes, path
from realmctl.errors import ConfigError
from realmctl.execution import processes
from realmctl.pipeline import ROLE, Role, Stage, flag_of, hints, planning, presets, roles
from realmctl.pipeline.fields import MOST, heeded
from realmctl.pipeline.values import names_beside_number
from realmctl.pipeline.workspace import with_defaults

ARGUMENT = "_argument"
"""Suffix of the hidden positional twin of an option."""
PANELS = {
    "reads": "Inputs",
    "source": "Inputs",
    "setting": "Settings (part of the recipe)",
    "runtime": "Compute",
}


def command_of(stage: type[Stage]) -> Callable[..., None]:
    """Return the function that Typer turns into the stage's command."""

    def run(workspace: Path, out: Path | None, json: bool, dry_run: bool, **values: Any) -> None:
        name = values.pop("preset", None)  # its callback has set the defaults of the other options
        preset = presets.settings_of(name, stage.command()) if name else {}
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in _joined(values).items()}
        named = [field for field, value in given.items() if value != preset.get(field, ...)]
        made = stage(**with_defaults(stage, heeded(stage, given, named), workspace))
        for name, artifact in made.inputs().items():
            what = f"{artifact.kind} {artifact.content[:12]}"
            log.say(f"{stage.command()}: {flag_of(name)} {artifact.path} ({what})")
        series = out or workspace / stage.makes
        if dry_run:
            print_result(planning.plan(made, series, measure=True), json, planning.plan_text)
        else:
            entry = {"command": stage.command(), **catalogue.summary(made.make(series))}
            if processes.is_first():
                print_result(entry, json, lambda value: str(value["path"]))

    if "device" in roles(stage):
        computes(run)
    panels = [*PANELS.values()]
    items = sorted(fields(stage), key=lambda item: panels.index(PANELS[item.metadata[ROLE].name]))
    keyword = functools.partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(_parameter(item, hints(stage)[item.name]) for item in items),
            *(_argument(item) for item in items if _has_argument(item.metadata[ROLE])),
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
        chosen = typing.get_origin(inner) is typing.Literal  # several names in one value, separated by commas
        hint = list[str] if chosen else list[inner]  # type: ignore[valid-type]
        default = list(default) if isinstance(default, tuple) else default
    beside = names_beside_number(hint)
    if beside:  # Typer has no option that is a number or a name, so the stage converts the text
        hint, default = str, str(default)
    parser = path if Path in (hint, *typing.get_args(hint)) else None
    if role.positional and not _has_argument(role):
        info: Any = typer.Argument(help=escape_markup(role.help), show_default=False, parser=parser)
    else:
        flag, no = flag_of(item.name), f"--no-{item.name.replace('_', '-')}"
        name = f"{flag}/{no}" if bool in (hint, *typing.get_args(hint)) else flag
        text = escape_markup(_help(item.name, role))
        choices = ("int", *typing.get_args(beside)) if beside else role.choices() if role.choices else ()
        names = f"<{'|'.join(choices)}>" if choices else None
        info = typer.Option(
            name,
            help=text,
            rich_help_panel=PANELS[role.name],
            parser=parser,
            metavar=names,
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
    name, keyword = item.name + ARGUMENT, inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=None, annotation=Annotated[Path | None, info])


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

    text = f"Use the settings of a paper for the options that are not given: {', '.join(names)}."
    info = typer.Option(
        "--preset",
        help=text,
        rich_help_panel=PANELS["setting"],
        is_eager=True,
        callback=set_defaults,
        autocompletion=completion.choices(lambda: names),
    )
    annotation = Annotated[str | None, info]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter("preset", keyword, default=None, annotation=annotation)] if names else []


def _help(name: str, role: Role) -> str:
    if role.instead_of:
        return f"{role.help} Default: the model's own, or the newest of <workspace>/index that fits newer blocks."
    if role.name != "reads" or role.explicit_only:
        limits = replace(role.range, at_most=None) if (role.range.at_most or 0) >= MOST else role.range
        told = limits.at_most is not None or limits.below is not None or (limits.at_least or 0) > 1
        return f"{role.help} {str(limits).capitalize()}." if told else role.help
    where = f"<workspace>/{name.replace('_', '-')}"
    return f"{role.help} Default: {where}{', if it exists' if role.optional else ''}."
