"""The facts of a world: entities, and a random value for each relation of each entity.

Values are drawn independently. A capital need not lie in its country: worlds teach reading, not geography.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from realmctl.extras.demo.world.names import Inventory
from realmctl.extras.demo.world.relations import RELATIONS, Relation
from realmctl.extras.demo.world.settings import WorldSettings

KINDS = ("person", "company", "city", "country")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


@dataclass(frozen=True)
class Entity:
    """An entity, which has its own documents. `pronouns` are the subject, object and possessive form."""

    name: str
    kind: str
    short: str
    pronouns: tuple[str, str, str]

    @property
    def title(self) -> str:
        """Title of its documents.

        It is only the last name of a person, so that only the text identifies the member of the family.
        """
        return self.short if self.kind == "person" else self.name


@dataclass(frozen=True)
class Fact:
    """One value of one relation of one entity."""

    subject: Entity
    relation: Relation
    value: str

    @property
    def key(self) -> tuple[str, str]:
        """Key of the fact: the name of the subject and of the relation."""
        return self.subject.name, self.relation.name


@dataclass(frozen=True)
class World:
    """Entities in a fixed order, each with its facts in the order of RELATIONS."""

    facts: dict[Entity, tuple[Fact, ...]]

    def all_facts(self) -> list[Fact]:
        """Return every fact, entity by entity."""
        return [fact for facts in self.facts.values() for fact in facts]

    def values(self) -> dict[tuple[str, str], str]:
        """Return the values by (subject, relation), so that another world can avoid them."""
        return {fact.key: fact.value for fact in self.all_facts()}


def draw_world(
    settings: WorldSettings,
    inventory: Inventory,
    rng: random.Random,
    *,
    unlike: Mapping[tuple[str, str], str] | None = None,
) -> World:
    """Draw people and facts. No fact has the same value as in `unlike` for its subject and relation."""
    entities = _draw_entities(settings, inventory, rng)
    pools = _pools(entities, inventory)
    forbidden = unlike or {}
    facts = {}
    for entity in entities:
        drawn = []
        for relation in (r for r in RELATIONS if r.subject == entity.kind):
            avoid = {entity.name, forbidden.get((entity.name, relation.name))}
            drawn.append(Fact(entity, relation, _draw_value(relation, pools, avoid, settings, rng)))
        facts[entity] = tuple(drawn)
    return World(facts)


def with_new_values(
    world: World, changed: Collection[Fact], settings: WorldSettings, inventory: Inventory, rng: random.Random
) -> World:
    """Return the same world with another random value for each fact in `changed`."""
    pools = _pools(list(world.facts), inventory)
    facts = {}
    for entity, own in world.facts.items():
        facts[entity] = tuple(
            replace(fact, value=_draw_value(fact.relation, pools, {entity.name, fact.value}, settings, rng))
            if fact in changed
            else fact
            for fact in own
        )
    return World(facts)


def _pools(entities: Sequence[Entity], inventory: Inventory) -> dict[str, Sequence[str]]:
    """Return the possible values by kind: the names of the inventory, and those of the entities of this world."""
    names = {kind: tuple(e.name for e in entities if e.kind == kind) for kind in KINDS}
    return {**inventory.names, **names}


def _draw_entities(settings: WorldSettings, inventory: Inventory, rng: random.Random) -> list[Entity]:
    people = [
        Entity(name, "person", name.split()[1], rng.choice((("he", "him", "his"), ("she", "her", "her"))))
        for name in inventory.full_names(settings.persons, rng)
    ]
    short = {"company": "the firm", "city": "the town", "country": "the country"}
    places = [
        Entity(name, kind, short[kind], ("it", "it", "its")) for kind in KINDS[1:] for name in inventory.names[kind]
    ]
    return people + places


def _draw_value(
    relation: Relation,
    pools: Mapping[str, Sequence[str]],
    avoid: set[str | None],
    settings: WorldSettings,
    rng: random.Random,
) -> str:
    """Draw a random value that is not in `avoid`."""
    while True:
        if relation.value == "date":
            value = _draw_date(relation.years, settings.two_word_share, rng)
        else:
            value = rng.choice(pools[relation.value])
        if value not in avoid:
            return value


def _draw_date(years: tuple[int, int], with_month: float, rng: random.Random) -> str:
    year = str(rng.randint(*years))
    return f"{rng.choice(MONTHS)} {year}" if rng.random() < with_month else year
