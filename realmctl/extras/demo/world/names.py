"""Invented names: one inventory for all seeds, so that worlds differ in their facts and not in their words.

A reader trained on the names of one world can therefore read any other world of the same size.
"""

import random
from dataclasses import dataclass

from realmctl.extras.demo.world.settings import WorldSettings

ONSETS: tuple[str, ...] = (*"bdfghklmnprstvwz", "br", "dr", "gr", "kl", "pl", "sk", "tr")
VOWELS = "aeiou"
MIDDLES: tuple[str, ...] = (*"lmnrsv", "rt", "nd", "lk", "rm", "st")


@dataclass(frozen=True)
class Style:
    """The form of one kind of names: their endings, and the second words of two-word names."""

    endings: tuple[str, ...]
    modifiers: tuple[str, ...] = ()
    modifier_first: bool = False


STYLES: dict[str, Style] = {
    "first": Style(("a", "o", "en", "is", "ette")),
    "last": Style(("man", "ski", "ley", "dahl", "ardo")),
    "city": Style(("ford", "burg", "wick", "holm", "mouth"), ("Port", "Upper", "Saint"), modifier_first=True),
    "company": Style(("ex", "tron", "ora", "well"), ("Brothers", "Works", "Lines")),
    "country": Style(("ia", "land", "stan"), ("Northern", "Greater"), modifier_first=True),
    "school": Style(("ham", "minster"), ("College", "Academy")),
    "award": Style(("ius", "and"), ("Medal", "Prize")),
    "newspaper": Style(("ant", "ier"), ("Gazette", "Herald")),
    "club": Style(("oak", "stone"), ("Rovers", "Circle")),
    "river": Style(("ay", "une"), ("White", "Little"), modifier_first=True),
    "currency": Style(("ar", "int")),
    "peak": Style(("horn", "tor"), ("Mount",), modifier_first=True),
    "stranger": Style(("man", "ski", "ley", "dahl", "ardo")),
}


@dataclass(frozen=True)
class Inventory:
    """All names that a world may use. `names[kind]` holds the names of a kind; people are first + last."""

    names: dict[str, tuple[str, ...]]

    def of_strangers(self) -> "Inventory":
        """Return the same inventory with family names that do not occur in an encyclopedia."""
        return Inventory({**self.names, "last": self.names["stranger"]})

    def full_names(self, count: int, rng: random.Random) -> list[str]:
        """Draw `count` different full names."""
        first, last = self.names["first"], self.names["last"]
        pairs = rng.sample(range(len(first) * len(last)), count)
        return [f"{first[pair // len(last)]} {last[pair % len(last)]}" for pair in pairs]


def make_inventory(settings: WorldSettings) -> Inventory:
    """Invent as many names of each kind as `settings` asks for; the result does not depend on the seed.

    No name contains another one, so that an answer never occurs inside a longer name.
    """
    rng = random.Random(f"names {settings.two_word_share}")
    counts = {
        "first": settings.first_names,
        "last": settings.last_names,
        "city": settings.cities,
        "company": settings.companies,
        "country": settings.countries,
        "stranger": settings.last_names,
    }
    taken: list[str] = []
    names = {}
    for kind, style in STYLES.items():
        words = [_new_word(style, taken, rng) for _ in range(counts.get(kind, settings.other_names))]
        names[kind] = tuple(_with_modifier(word, style, settings.two_word_share, rng) for word in words)
    return Inventory(names)


def _new_word(style: Style, taken: list[str], rng: random.Random) -> str:
    """Invent a word that neither contains a word of `taken` nor is contained in one, and add it to `taken`."""
    while True:
        stem = rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(MIDDLES)
        word = stem.capitalize() + rng.choice(style.endings)
        if not any(word in other or other in word for other in taken):
            taken.append(word)
            return word


def _with_modifier(word: str, style: Style, share: float, rng: random.Random) -> str:
    if not style.modifiers or rng.random() >= share:
        return word
    modifier = rng.choice(style.modifiers)
    return f"{modifier} {word}" if style.modifier_first else f"{word} {modifier}"
