"""The application: a command for each stage, the other commands, and the entry point."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, NoReturn

import typer

from realmctl import registry
from realmctl.cli import available_stages, order
from realmctl.cli.command import command_of
from realmctl.cli.help import ShownCommand, description_of, escape_markup
from realmctl.cli.invoke import exit_code_of, with_exit_code
from realmctl.errors import EXIT_CODES, ConfigError, RealmctlError
from realmctl.execution import standard_streams
from realmctl.execution.signals import install_stop_now
from realmctl.pipeline import Command, removed
from realmctl.pipeline.discovery import own_names, stage_at
from realmctl.registry import class_at
from realmctl.version import __version__

EPILOG = (
    "Example: realmctl chunk dump.xml.bz2 && realmctl tag && realmctl ict-init --bert bert-base-uncased\n\n"
    f"Exit codes: {'; '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}."
)


HELP = ("-h", "--help")
VERSION = ("-V", "--version")


def _version(value: bool) -> None:
    if value:
        print(f"realmctl {__version__}")
        raise typer.Exit()


Version = typer.Option(*VERSION, callback=_version, is_eager=True, help="Print the version.")


def _main(version: Annotated[bool, Version] = False) -> None:
    """Search documents, and train retrieval-augmented models (REALM): from documents to an exact-match score.

    Each stage reads and writes artifacts.
    """


def build(only: str = "") -> typer.Typer:
    """Return the application: a command for each stage and the other commands, in order of use.

    Args:
        only: The one command that is wanted. A name that no command has gives the whole application, which suggests others. `--help` gives
            commands without options, for it shows none: making hundreds of them takes a third of the time. `--version` gives none, so that
            it is printed where a room is broken.
    """
    absent = registry.absent()
    app = typer.Typer(
        name="realmctl",
        epilog=EPILOG,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": [*HELP]},
        rich_markup_mode="rich",
        suggest_commands=not absent,  # the command that was meant may be one of those
    )
    app.callback()(_main)
    if only in VERSION:
        return app
    stages, own, others = available_stages.stages_by_name(), own_names(), available_stages.other_commands()
    _, unusable = available_stages.stages_of_plugins()
    known = {**others, **stages, **unusable}
    for name in {only} if only in known else known:
        if name in unusable:
            _add_unusable(app, name, unusable[name])
            continue
        offer: Any = known[name]
        kind: Any = (
            stage_at(name, offer) if name in own else class_at(offer, Command) if isinstance(offer, str) else offer
        )
        panel = order.group_of(name) if name in own or name in others else "Stages of plug-ins"
        run = _listed if only in HELP else with_exit_code(command_of(kind))
        app.command(name, cls=ShownCommand, rich_help_panel=panel, help=description_of(kind))(run)
    app.registered_commands.sort(key=lambda command: (order.place_of(command.name or ""), command.name or ""))
    return app


def _listed() -> None:
    """Stands for a command whose help is listed."""


def _add_unusable(app: typer.Typer, name: str, error: RealmctlError) -> None:
    """Add a command that accepts any options and raises `error`."""

    def refuse() -> None:
        raise error

    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    text = f"Not available: {error}".splitlines()[0]
    app.command(name, rich_help_panel="Stages of plug-ins", help=escape_markup(text), context_settings=anything)(
        with_exit_code(refuse)
    )


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Parse the arguments, run the command, and leave with the documented exit code. `realmctl.__main__` calls it."""
    install_stop_now()
    standard_streams.prepare()
    is_utf_8 = sys.stdout.encoding.lower().replace("-", "") == "utf8"
    sys.stdout.reconfigure(errors="surrogateescape" if is_utf_8 else "backslashreplace")  # type: ignore[union-attr]
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(exit_code_of(lambda: _parse_and_run(given)))


def _parse_and_run(arguments: list[str]) -> object:
    try:
        application = build(*arguments[:1])  # a shell that completes a line gives none, and needs all options
        return application(arguments or ["--help"], "realmctl", standalone_mode=False)
    except Exception as error:
        message = getattr(error, "format_message", None)  # a usage error; its class depends on the version of typer
        if message is None:
            raise
        if told := _gone(error, arguments):
            raise ConfigError(told) from None
        where = getattr(getattr(error, "ctx", None), "command_path", "realmctl")
        absent = registry.absent() if where == "realmctl" else ()
        missing = f" This installation lacks {' and '.join(absent)} and the commands there." if absent else ""
        raise ConfigError(f"{message()}{missing} See `{where} --help`.") from None


def _gone(error: Exception, arguments: Sequence[str]) -> str | None:
    """Return what to do where a usage error is about a command, an option or a value of an option that is gone."""
    command, *given = arguments
    if option := getattr(error, "option_name", ""):
        return removed.advice(command, option)
    pairs = [*map(" ".join, pairwise(given)), *(each.replace("=", " ", 1) for each in given)]
    return next(filter(None, (removed.advice(command, each) for each in ("", *pairs))), None)
