"""One element after the other, with words of its own inside: what a test puts in, and what must come out.

In a snippet `@` is a new word that a reader sees, and `~` one that no reader sees; `¤` and `≈` are the signs `@` and `~` themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "wo", "xu", "ze")
PLACE = re.compile("[@~]")


@dataclass(frozen=True)
class Snippets:
    """Snippets with words in them: their text, by their names the words that a reader sees in order, and those that none sees."""

    text: str
    shown: dict[str, list[str]]
    unseen: list[str]


def filled(snippets: Iterable[tuple[str, str]]) -> Snippets:
    """Put a new word into each place of these snippets, which have names."""
    texts, shown, unseen, number = list[str](), dict[str, list[str]](), list[str](), 0
    for name, snippet in snippets:
        shown[name] = []
        parts = list[str]()
        for part in re.split("([@~])", snippet):
            if PLACE.fullmatch(part):
                number += 1
                word = "q" + "".join(SYLLABLES[number >> shift & 15] for shift in (8, 4, 0))
                (shown[name] if part == "@" else unseen).append(word)
                part = word
            parts.append(part.replace("¤", "@").replace("≈", "~"))
        texts.append("".join(parts))
    return Snippets("\n".join(texts), shown, unseen)


def faults(snippets: Snippets, text: str) -> dict[str, list[str]]:
    """The elements whose words do not come out once, each as a word and in order; under `unseen` the words that should not have come out."""
    words = re.findall(r"\w+", text)
    wrong = {
        name: shown
        for name, shown in snippets.shown.items()
        if [word for word in words if any(each in word for each in shown)] != shown
    }
    if seen := [word for word in snippets.unseen if word in text]:
        wrong["unseen"] = seen
    first = {name: words.index(shown[0]) for name, shown in snippets.shown.items() if shown and name not in wrong}
    if list(first) != sorted(first, key=first.__getitem__):
        wrong["order"] = list(first)
    return wrong
