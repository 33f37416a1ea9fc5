"""`--official`: every name has a meaning, and an unknown one is refused."""

from __future__ import annotations

import typing

from realmctl import deviations
from realmctl.cli.available_stages import available_stages
from realmctl.pipeline import hints, roles

STAGES = {
    name: stage
    for name, stage in available_stages().items()
    if "official" in roles(stage) and stage.__module__.startswith("stages.")
}


def deviations_of(stage) -> tuple[str, ...]:
    [names, _] = typing.get_args(hints(stage)["official"])
    return typing.get_args(names)


def test_every_deviation_has_a_meaning_and_belongs_to_a_stage():
    assert sorted(deviations.MEANING) == sorted(name for stage in STAGES.values() for name in deviations_of(stage))


def test_an_unknown_deviation_is_refused_with_the_known_ones(realmctl, chain):
    inputs = [f"--{name}={getattr(chain, name).path}" for name in ("blocks", "retriever", "index", "encoder")]
    code, _, err = realmctl("finetune", *inputs, "--questions", chain.questions, "--official", "haste")
    assert code == 2 and "haste" in err
