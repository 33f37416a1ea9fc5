"""What was typed wrong is told before what the workspace lacks, for every option of every stage."""

from __future__ import annotations

import typing
from pathlib import Path

import pytest

from realmctl.cli.available_stages import available_stages
from realmctl.errors import ConfigError, InputError
from realmctl.pipeline import flag_of, hints, roles
from realmctl.pipeline.workspace import with_defaults

STAGES = available_stages()


def needed_inputs(stage):
    return {
        name for name, role in roles(stage).items() if role.name == "reads" and not (role.optional or role.replaced_by)
    }


def kind_of(stage, name):
    """The type of a field without None, and the names that it can have beside a number or alone."""
    kinds = [kind for kind in (hints(stage)[name], *typing.get_args(hints(stage)[name])) if kind is not type(None)]
    names = [name for kind in kinds if typing.get_origin(kind) is typing.Literal for name in typing.get_args(kind)]
    return kinds, [*names, *(choices() if (choices := roles(stage)[name].choices) else ())]


def wrong_values(stage):
    """(field, value) of every option that has choices, a range or a number, each with a value that it cannot have."""
    for name, role in roles(stage).items():
        kinds, names = kind_of(stage, name)
        if role.name in ("setting", "runtime"):
            if names or {int, float, bool} & set(kinds):
                yield name, "nonsense"
            if {int, float} & set(kinds):
                yield name, -(10**12)


def unused_values(stage):
    """(field, value) of every option that says nothing beside the defaults of the others."""
    known = roles(stage)
    defaults = {name: getattr(stage, name, None) for name in known}

    def given(field):
        name, _, value = field.partition("=")
        from_workspace = known[name].name == "reads" and not known[name].optional
        return str(defaults[name]) == value if value else from_workspace or bool(defaults[name])

    for name, role in known.items():
        if role.used_with and not any(map(given, role.used_with.split("|"))):
            yield name, other_value(stage, name, defaults[name])


def other_value(stage, name, default):
    kinds, names = kind_of(stage, name)
    role = roles(stage)[name]
    if names:
        return next(value for value in names if value != default)
    if bool in kinds:
        return not default
    if {int, float} & set(kinds):
        candidates = (1, 2, 0.5, role.range.at_least, role.range.at_most)
        return next(value for value in candidates if value not in (None, default) and value in role.range)
    return "x"


@pytest.mark.parametrize("command", [name for name, stage in STAGES.items() if needed_inputs(stage)])
def test_an_empty_workspace_does_not_hide_what_was_typed_wrong(tmp_path, command):
    stage = STAGES[command]
    with pytest.raises(InputError, match="has no finished version"):
        with_defaults(stage, {}, tmp_path)
    for name, value in [*wrong_values(stage), *unused_values(stage)]:
        with pytest.raises(ConfigError) as raised:
            with_defaults(stage, {name: value}, tmp_path)
        assert str(raised.value).startswith(flag_of(name)), (name, value)
    for name, role in roles(stage).items():
        if role.name in ("reads", "source") and not role.used_with and needed_inputs(stage) - {name}:
            with pytest.raises(InputError, match="no-such-thing"):
                with_defaults(stage, {name: Path("no-such/no-such-thing:1")}, tmp_path)


def test_the_options_of_stages_are_among_them():
    wrong = {(command, name) for command, stage in STAGES.items() for name, _ in wrong_values(stage)}
    unused = {(command, name) for command, stage in STAGES.items() for name, _ in unused_values(stage)}
    assert {("pretrain", "retriever_loss"), ("pretrain", "refresh"), ("finetune", "optimizer")} <= wrong
    assert ("pretrain", "cloze_every") in unused and len(wrong) > 100


@pytest.mark.usefixtures("here")
def test_an_empty_workspace_on_the_command_line(realmctl):
    for arguments, told in (
        (["pretrain", "--retriever-loss", "nonsense"], "--retriever-loss: 'nonsense' is not one of marginal"),
        (["pretrain", "--reader", "nonsense"], "--reader: 'nonsense' is not one of masked"),
        (["pretrain", "--cloze-every", "5"], "--cloze-every needs --cloze-recall"),
        (["embed", "--device", "tpu"], "--device 'tpu' is not a device"),
    ):
        code, out, err = realmctl(*arguments)
        assert (code, out) == (2, "") and told in " ".join(err.split()), arguments
    Path("questions.jsonl").touch()
    code, _, err = realmctl("finetune", "--questions", "questions.jsonl", "--retriever", "no-such-retriever")
    assert code == 3 and "no-such-retriever" in err and "finished version" not in err
