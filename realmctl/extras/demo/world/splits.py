"""The splits of a world: held-out entities, the facts of the sentence corpus, and the questions of each split.

A held-out entity appears only in the knowledge corpus, neither as subject nor as value elsewhere. Dev and
test questions are about held-out entities only: only the knowledge corpus contains their answers.
"""

import random
from dataclasses import dataclass

from realmctl.errors import ConfigError
from realmctl.extras.demo.world.facts import KINDS, Entity, Fact, World
from realmctl.extras.demo.world.settings import WorldSettings


@dataclass(frozen=True)
class Splits:
    """Disjoint sets of facts by split name, and the facts in the sentence corpus."""

    held_out: frozenset[str]  # names of entities
    told: tuple[Fact, ...]
    questions: dict[str, tuple[Fact, ...]]  # train, seen, dev, test


def split_world(world: World, settings: WorldSettings, rng: random.Random) -> Splits:
    """Draw train and seen from the facts that the sentence corpus tells, dev and test from the held-out ones.

    "seen" facts are in the sentence corpus but in no training question, so a model may know them without retrieval.
    """
    held_out = _draw_held_out(list(world.facts), settings.held_out_share, rng)
    told = tuple(fact for fact in world.all_facts() if fact.subject.name not in held_out and fact.value not in held_out)
    hidden = [fact for fact in world.all_facts() if fact.subject.name in held_out]
    train, seen = _draw(told, (settings.train_questions, settings.seen_questions), rng)
    dev, test = _draw(hidden, (settings.dev_questions, settings.test_questions), rng)
    return Splits(held_out, told, {"train": train, "seen": seen, "dev": dev, "test": test})


def _draw_held_out(entities: list[Entity], share: float, rng: random.Random) -> frozenset[str]:
    """Draw the same share of entities of every kind."""
    held_out: set[str] = set()
    for kind in KINDS:
        names = [entity.name for entity in entities if entity.kind == kind]
        held_out.update(rng.sample(names, round(share * len(names))))
    return frozenset(held_out)


def _draw(
    facts: tuple[Fact, ...] | list[Fact], counts: tuple[int, int], rng: random.Random
) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    """Draw two disjoint random sets of facts, in random order."""
    first, second = counts
    if first + second > len(facts):
        raise ConfigError(
            f"{first} + {second} questions were requested, but this world has only {len(facts)} "
            f"facts for them: request fewer questions or more persons."
        )
    drawn = rng.sample(facts, first + second)
    return tuple(drawn[:first]), tuple(drawn[first:])
