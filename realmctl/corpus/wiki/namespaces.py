"""Namespaces: what the text before the colon of a link means. The names stand in realmctl/data/namespaces.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from realmctl.data import table, words

FILES = 6
HIDDEN_KEYS = (FILES, 14, -2)
"""The namespaces of files, categories and media: a link to them shows no word of the running text."""
ENGLISH = frozenset(["file", "image", "media", "category"])
OTHER_PROJECTS = frozenset(name.replace("_", " ") for name in words(table("namespaces")["links"]["other_projects"]))
"""Prefixes of links to other projects, and namespaces of English Wikipedia without articles."""


@dataclass(frozen=True)
class Namespaces:
    """The names of a site's namespaces, in lower case, and its language.

    Attributes:
        hidden: a link to such a page is dropped with its content (files, categories).
        elsewhere: the label of such a link stays, but its target is no article (other projects, users, portals).
        variants: the variants of Chinese whose words are chosen where a page has several, the likeliest first. Empty for another language.
        language: the code, such as fr, for templates. Empty where it is not known.
    """

    hidden: frozenset[str] = ENGLISH
    elsewhere: frozenset[str] = OTHER_PROJECTS
    variants: tuple[str, ...] = ()
    language: str = ""


def normalized(name: str) -> str:
    """Return the name of a namespace as it is compared: in lower case, with spaces."""
    return " ".join(name.replace("_", " ").lower().split())


def namespaces(own: Mapping[str, int], language: str = "", variants: tuple[str, ...] = ()) -> Namespaces:
    """Return the namespaces of a site by its own names, such as {"Datei": 6}, and by all names of its language.

    A German dump has [[Bild:...]] from before `Datei` was introduced. Where the dump states no language, those count
    whose namespace of files has the site's name.
    """
    hidden = {normalized(name) for name, key in own.items() if key in HIDDEN_KEYS}
    elsewhere = {normalized(name) for name, key in own.items() if key and key not in HIDDEN_KEYS}
    files = {normalized(name) for name, key in own.items() if key == FILES} - ENGLISH
    known = list(_names_of_languages())
    stated = [names for codes, names in known if language.lower() in codes]
    for names in stated or [names for _, names in known if not files.isdisjoint(names)]:
        hidden |= names
    return Namespaces(ENGLISH | hidden, (OTHER_PROJECTS | elsewhere) - hidden, variants, language.lower())


def _names_of_languages() -> Iterator[tuple[list[str], set[str]]]:
    for codes, names in table("namespaces")["hidden"].items():
        yield codes.split(), {name.replace("_", " ") for name in names.split()}
