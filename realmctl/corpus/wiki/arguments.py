"""The arguments of a template, by position and by name (mediawiki.org/wiki/Help:Templates#Parameters)."""

from __future__ import annotations

import re
from dataclasses import dataclass

BRACKETS = re.compile(r"\[\[|\]\]|\|")
POSITION = re.compile(r"[1-9][0-9]?")


@dataclass
class Arguments:
    """The arguments of a template: `args` by position, `named` by name. A missing argument is ""."""

    args: list[str]
    named: dict[str, str]

    def __getitem__(self, place: int) -> str:
        return self.args[place] if -len(self.args) <= place < len(self.args) else ""

    def get(self, *names: str) -> str:
        """Return the first of these named arguments that is given."""
        return next((self.named[name] for name in names if self.named.get(name)), "")

    def yes(self, name: str) -> bool:
        """Return whether a named argument is switched on: `y`, `yes`, `on`, `true` or `1`."""
        return self.named.get(name, "").lower() in ("y", "yes", "on", "true", "1")


def arguments(text: str) -> Arguments:
    """Return the arguments in `a|key=b|2=c`. A number as key counts as a position."""
    args, named, place = list[str](), dict[str, str](), 0
    for part in _split(text):
        key, equals, value = part.partition("=")
        if equals and "[" not in key and "<" not in key:
            key = key.strip()
            if not POSITION.fullmatch(key):
                named[key.lower()] = value.strip()
                continue
            at = int(key) - 1
        else:
            at, value = place, part
            place += 1
        if at >= len(args):
            args += [""] * (at + 1 - len(args))
        args[at] = value.strip()
    return Arguments(args, named)


def _split(text: str) -> list[str]:
    """Split at the pipes that are not inside [[links]], in one pass."""
    if "[[" not in text:
        return text.split("|")
    parts, start, depth = [], 0, 0
    for match in BRACKETS.finditer(text):
        token = match[0]
        if token == "|" and depth <= 0:
            parts.append(text[start : match.start()])
            start = match.end()
        elif token != "|":
            depth += 1 if token == "[[" else -1
    return [*parts, text[start:]]
