"""A command that makes no artifact: its fields become arguments and options, and it shows its result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from realmctl.cli.command import command_of
from realmctl.cli.help import ShownCommand as TyperCommand
from realmctl.errors import ConfigError
from realmctl.pipeline import Command, InWorkspace, Show, argument, output, reads, setting

pytestmark = pytest.mark.usefixtures("here")


class Greet(InWorkspace):
    """Greet someone."""

    names: tuple[str, ...] = argument("Who is greeted.")
    model: Path | None = reads("model", help="Default: none.", explicit_only=True, default=None)
    times: int = setting("How often.", default=1, at_least=1, at_most=3, short="-n")
    loud: bool = setting("With a mark.", default=False)
    mark: str = setting("the mark.", default="!", used_with="loud")
    out: Path | None = output("File to write.", default=None, short="-o")

    def run(self, show: Show) -> None:
        show({"started": True}, None)
        greeting = " and ".join(self.names) + (self.mark if self.loud else "")
        show(
            {"greeting": greeting, "workspace": str(self.workspace)}, lambda value: self.times * str(value["greeting"])
        )


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command(cls=TyperCommand)(command_of(Greet))
    found = CliRunner().invoke(app, arguments)
    if isinstance(found.exception, ConfigError):
        raise found.exception
    return found.exit_code, found.output


def test_arguments_options_and_short_names():
    assert run("Ada", "Ben", "-n", "2", "--loud") == (0, "Ada and Ben!" * 2 + "\n")
    assert run()[0] == 2  # an argument is required


def test_json_is_what_is_shown_and_people_are_not_told_everything(monkeypatch):
    monkeypatch.setenv("REALMCTL_WORKSPACE", "elsewhere")
    first, second = map(json.loads, run("Ada", "--json")[1].splitlines())
    assert first["started"] is True and second["greeting"] == "Ada" and second["workspace"] == "elsewhere"
    assert run("Ada")[1] == "Ada\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--times", "4"), "--times 4 must be from 1 to 3"), (("--mark", "?"), "--mark needs --loud")],
)
def test_ranges_and_what_an_option_needs_are_checked_as_those_of_a_stage(arguments, message):
    with pytest.raises(ConfigError, match=message):
        run("Ada", *arguments)


def test_a_command_without_run_is_a_mistake_of_its_author():
    class Nothing(Command):
        """Do nothing."""

    with pytest.raises(ConfigError, match="Nothing has no `run`"):
        Nothing().run(lambda value, text: None)
