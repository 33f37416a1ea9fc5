"""Org in the marks that pandoc reads: it drops a target that links itself (`<<<words>>>`), notes within notes, and notes whose words have brackets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NOTE = r"\[fn:(?P<name>[\w-]*):(?=[^\]])"
TOKEN = re.compile(
    r"(?P<kept>^[ \t]*#\+BEGIN_(?:SRC|EXAMPLE|EXPORT|COMMENT)\b.*?(?:^[ \t]*#\+END_|\Z))|<<<(?P<radio>[^<>\n]+)>>>|"
    rf"{NOTE}|^(?P<defined>\[fn:[\w-]+\])|\[fn:(?P<asked>[\w-]+)\]|(?P<heading>^\*+[ ])|(?P<gap>\n[ \t]*\n(?:[ \t]*\n)*)|[\[\]]",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)


@dataclass(slots=True)
class _Open:
    """A bracket that is not closed yet, the name of its note, None of another bracket, and its words so far."""

    token: str
    name: str | None = None
    words: list[str] = field(default_factory=list)


def as_text(source: str) -> str:
    """A source whose radio targets are words, and whose notes stand behind the text, each once; one within a note stands there in parentheses.

    Blocks of code stay, and so do brackets that are not closed in their paragraph.
    """
    named = {name for name in re.findall(NOTE, source) if name}
    around, notes, place, is_defined = [_Open("")], list[str](), 0, False
    key = "inline"
    while key in source:
        key += "x"
    for token in TOKEN.finditer(source):
        around[-1].words.append(source[place : token.start()])
        place = token.end()
        if token["kept"] or token["defined"] or token["heading"] or token["gap"]:
            _give_up(around)
            if token["defined"] or token["heading"] or token[0].count("\n") > 2:
                is_defined = bool(token["defined"])
        if token["name"] is not None or token[0] == "[":
            around.append(_Open(token[0], token["name"]))
        elif token[0] != "]":
            around[-1].words.append("" if token["asked"] in named else token["radio"] or token[0])
        elif len(around) == 1:
            around[-1].words.append("]")
        else:
            closed = around.pop()
            words = "".join(closed.words)
            if closed.name is None:
                around[-1].words.append(f"[{words}]")
            elif is_defined or any(each.name is not None for each in around):
                around[-1].words.append(f" ({' '.join(words.split())})")
            else:
                notes.append(f"\n\n[fn:{key}{len(notes)}] {' '.join(words.split())}")
                around[-1].words.append(f"[fn:{key}{len(notes) - 1}]")
    around[-1].words.append(source[place:])
    _give_up(around)
    return "".join([*around[0].words, *notes, "\n" * bool(notes)])


def _give_up(around: list[_Open]) -> None:
    for each in around[1:]:
        around[0].words += [each.token, *each.words]
    del around[1:]
