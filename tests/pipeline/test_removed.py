"""Options and commands that are gone answer with what to do: on the command line, in pipeline files and in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from realmctl import stages
from realmctl.cli import app
from realmctl.cli.available_stages import available_stages, other_commands
from realmctl.errors import ConfigError
from realmctl.pipeline import flag_of, hints, presets, removed, roles
from realmctl.pipeline.values import typed
from realmctl.registry import object_at

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.house
@pytest.mark.parametrize(("command", "option"), removed.OPTIONS)
def test_what_is_gone_is_really_gone_and_answers(realmctl, command, option):
    flag, _, value = option.partition(" ")
    kind: Any = available_stages().get(command) or object_at(other_commands()[command])
    known = {flag_of(name): role for name, role in roles(kind).items()}
    if flag == "--preset":
        assert value not in presets.names_for(command)
    elif value and (choices := known[flag].choices):
        assert value not in choices()
    elif value:
        with pytest.raises(ConfigError):
            typed(hints(kind)[flag[2:].replace("-", "_")], value, flag)
    else:
        assert flag not in known
    for given in ((option.split() if value else [flag, "1"]), [f"{flag}={value or 1}"]):
        code, out, err = realmctl(command, *given)
        told = f"{command}: `{option}` is gone: {removed.OPTIONS[command, option]}"
        assert (code, out) == (2, "") and told in " ".join(err.split())


@pytest.mark.parametrize("command", removed.COMMANDS)
def test_a_command_that_is_gone(realmctl, command):
    assert command not in {**available_stages(), **other_commands()}
    code, out, err = realmctl(command, "x", "--y")
    assert (code, out) == (2, "") and f"`{command}` is gone: {removed.COMMANDS[command]}" in err


def test_what_is_gone_in_python_and_in_a_pipeline_file(realmctl):
    with pytest.raises(ConfigError, match="ict-init: `--queue` is gone: a momentum queue"):
        stages.IctInit(queue=9)
    for text in (
        "stages: {a: {stage: ict-init, queue: 9}}",
        "stages: {a: {stage: pretrain, reader: frozen}}",
        "defaults: {ict-init: {delete-rate: 0.1}}\nstages: {a: {stage: ict-init}}",
    ):
        Path("p.yaml").write_text(text)
        code, _, err = realmctl("run", "p.yaml", "--dry-run")
        assert code == 2 and "is gone: " in err, text


def test_what_never_was_is_told_as_before(realmctl):
    code, _, err = realmctl("ict-init", "--qeue", "9")
    assert code == 2 and "No such option: --qeue" in err and "is gone" not in err
    assert removed.advice("chunk", "--queue") is None and removed.advice("ict-init") is None


@pytest.mark.house
def test_the_advice_names_options_that_exist():
    application = typer.main.get_command(app.build())
    options = {option for command in application.commands.values() for each in command.params for option in each.opts}  # type: ignore[attr-defined]
    for told in {**removed.OPTIONS, **removed.COMMANDS}.values():
        words = {word.strip(",.;:()") for word in str(told).split()}
        assert {word for word in words if word.startswith("--")} <= options, told
