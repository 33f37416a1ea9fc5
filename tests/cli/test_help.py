"""`--help` lists what most people set first, `--help-all` everything, in panels by what an option concerns."""

from __future__ import annotations

import re

import pytest
import typer

from realmctl.cli import app

pytestmark = pytest.mark.usefixtures("here")


def panels(text: str) -> dict[str, list[str]]:
    """{panel: its options}, in the order of a help text."""
    found = re.findall(r"─ ([A-Z][\w ():-]+?) ─+╮\n(.*?)╰", text, re.DOTALL)
    return {title: re.findall(r"^│ (?:\* +)?(--\S+)", box, re.MULTILINE) for title, box in found}


def options(text: str) -> set[str]:
    return {name for names in panels(text).values() for name in names}


def test_help_says_how_many_more_options_there_are_and_help_all_lists_them(realmctl):
    first, every = realmctl("pretrain", "--help")[1], realmctl("pretrain", "--help-all")[1]
    told = re.search(r"(\d+) more options that few people set: realmctl pretrain --help-all", first)
    assert told is not None and "--help-all" not in options(every) and "more options" not in every
    more = options(every) - options(first)
    assert len(more) == int(told[1]) and "--layer-decay" in more
    assert options(first) - options(every) == {"--help-all"}
    assert {"--spans", "--steps", "--candidates", "--device"} <= options(first)


def test_an_option_with_one_choice_is_taken_and_not_shown(realmctl):
    every = options(realmctl("pretrain", "--help-all")[1])
    assert "--candidates-from" not in every and "--reader" in every, (
        "a package may offer a source of candidates, the lab offers a reader"
    )
    code, _, err = realmctl("pretrain", "--candidates-from", "nowhere")
    assert code == 2 and "--candidates-from: 'nowhere' is not one of index" in err


def test_panels_say_what_an_option_concerns_and_which_room_adds_it(realmctl):
    found = panels(realmctl("pretrain", "--help-all")[1])
    titles = [title for title in found if title != "Options"]
    assert titles[:2] == ["Inputs", "Settings (part of the recipe)"] and titles[-2:] == ["Compute", "Output"]
    assert titles[2:-2] == ["Extras: trackers", "Lab: distillation", "Lab: language models"]
    assert (
        "--track" in found["Extras: trackers"]
        and "--reader-lm" in found["Lab: language models"]
        and "--reader-temperature" in found["Lab: distillation"]
    )
    own = panels(realmctl("spider-init", "--help-all")[1])  # a stage of a room: the room is not named again
    assert not [title for title in own if title.startswith("Lab")]


def test_a_command_without_such_options_has_nothing_more_to_say(realmctl):
    text = realmctl("ls", "--help")[1]
    assert text == realmctl("ls", "--help-all")[1] and "--help-all" not in text


def test_options_that_help_leaves_out_are_taken_all_the_same():
    application = typer.main.get_command(app.build())
    for name, command in application.commands.items():  # type: ignore[attr-defined]
        named = {each.name for each in command.params}
        assert getattr(command.callback, "advanced", set()) <= named, name
