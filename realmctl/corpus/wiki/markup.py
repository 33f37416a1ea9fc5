"""Remove the hidden elements, templates and tables of wikitext, whether or not their marks are balanced.

Each function reads the text once from left to right, so its time is linear for any text. Where marks do not match,
only the marks are dropped. The elements are those of mediawiki.org/wiki/Help:Formatting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from realmctl.corpus.wiki.templates import render
from realmctl.data import table, words
from realmctl.tokens.scripts import JOINED_LETTER

ELEMENTS_WITHOUT_PROSE = words(table("wikitext")["tags"]["without_prose"])
"""Elements whose content is not prose. <nowiki> is handled separately."""

# a name of an element ends with a blank, a slash or the bracket. comments; references without tags inside, which are most of all elements; other tags
HIDDEN = re.compile(
    rf"<!--|<ref(?=[\s>])[^<>/]*+>[^<]*+(</ref\s*+>)|<(/?)(nowiki|{'|'.join(sorted(ELEMENTS_WITHOUT_PROSE))})(?=[\s/>])([^<>]*+)>",
    re.IGNORECASE,
)
CLOSE = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in (*ELEMENTS_WITHOUT_PROSE, "nowiki")}
HIDING = re.compile(r"display\s*:\s*none\b|visibility\s*:\s*(?:hidden|collapse)\b", re.IGNORECASE)
"""A style that hides an element, in wikitext and in HTML."""
STYLED = re.compile(rf"<([a-z]+)\b[^<>]*\bstyle\s*=[^<>]*(?:{HIDING.pattern})[^<>]*(?<!/)>", re.IGNORECASE)
MOST_HIDDEN = 10_000
"""Characters of a hidden element; a longer one is not closed, and stays."""
LITERAL = str.maketrans({c: f"&#{ord(c)};" for c in "[]{}|<>'*#:;=_"})
SIMPLE_FORMULA = re.compile(r"[\w\s.,+\-=/()!−]{1,40}")


def drop_hidden(text: str) -> str:
    """Drop comments, the elements without prose (<ref>, <math>, <gallery>) and those that their style hides, and escape what <nowiki> protects."""
    return "".join(_seen("".join(_visible(text)))) if "<" in text else text


def _seen(text: str) -> Iterator[str]:
    done, unclosed = 0, set[str]()
    for opened in STYLED.finditer(text) if "style" in text else ():
        if opened.start() < done or opened[1] in unclosed:
            continue
        depth, inside = 1, text[opened.end() : opened.end() + MOST_HIDDEN]
        for tag in re.finditer(rf"<(/?){opened[1]}\b[^<>]*>", inside, re.IGNORECASE):
            depth += -1 if tag[1] else not tag[0].endswith("/>")
            if not depth:
                yield text[done : opened.start()]
                done = opened.end() + tag.end()
                break
        else:
            unclosed.add(opened[1])
    yield text[done:]


def _visible(text: str) -> Iterator[str]:
    done = 0
    closes: dict[str, re.Match[str] | None] = {}
    while match := HIDDEN.search(text, done):
        yield text[done : match.start()]
        reference, ending, name, attributes = match.groups()
        done = match.end()
        if reference:
            yield _gap(text, done)
        elif name is None:
            end = text.find("-->", done)
            done = end + 3 if end >= 0 else _find(text, "\n", done)
        elif not (ending or attributes.rstrip().endswith("/")) and (close := _close(text, name.lower(), done, closes)):
            yield _shown(name.lower(), text[done : close.start()])
            done = close.end()
            if name.lower() == "ref":
                yield _gap(text, done)
    yield text[done:]


def _gap(text: str, place: int) -> str:
    """Return what replaces a reference: a space where two words would touch, in scripts that part words by blanks."""
    return " " if text[place : place + 1].isalpha() and not JOINED_LETTER.match(text, place) else ""


def _close(text: str, name: str, start: int, known: dict[str, re.Match[str] | None]) -> re.Match[str] | None:
    """Return the end tag that belongs to the tag before `start`, or None if there is none."""
    if name not in known or ((close := known[name]) and close.start() < start):
        known[name] = CLOSE[name].search(text, start)
    close = known[name]
    if close and name == "ref":
        second = text.find("<ref", start, close.start())
        if second >= 0 and text.find("\n\n", start, second) >= 0:
            return None
    return close


def _shown(name: str, inside: str) -> str:
    if name == "nowiki":
        return inside.translate(LITERAL)
    return inside if name == "math" and SIMPLE_FORMULA.fullmatch(inside) else ""


def _find(text: str, character: str, start: int) -> int:
    place = text.find(character, start)
    return len(text) if place < 0 else place


BRACES = re.compile(r"\{\{([^{}]*+)\}\}|\{\{|\}\}|\{\||\|\}(?!\}(?!\}))")
MAX_RENDERED_DEPTH = 40
DEEPEST_DEFAULT = 3
Shown = Callable[[str, str, int, int], str]


@dataclass(slots=True)
class _Open:
    """A template or table that is not closed yet, where it begins, and the text inside it so far."""

    token: str
    start: int
    pieces: list[str] = field(default_factory=list)


PARAMETER = re.compile(r"\{\{\{[^{}|\n]*+(?:\|((?:[^{}|\[]|\[\[[^\[\]{}]*+\]\]|\[)*+))?\}\}\}")
"""A parameter of a template, of which a page shows the default."""


def render_templates(text: str, language: str = "") -> str:
    """Replace templates by the words that they show on the Wikipedia of a language, and drop tables. An unclosed one loses its first line."""
    shown = partial(render, language=language)
    for _ in range(DEEPEST_DEFAULT if "{{{" in text else 0):
        text = PARAMETER.sub(r"\1", text)
    stack = [_Open("", 0)]
    waiting = {"{{": 0, "{|": 0}
    done = 0
    for match in _braces(text):
        start, token = match.start(), match[0]
        stack[-1].pieces.append(text[done:start])
        if (leaf := match[1]) is not None:
            stack[-1].pieces.append(shown(leaf, text, start, match.end()))
        elif token == "{{" or (token == "{|" and (start == done or _begins_line(text, start))):
            stack.append(_Open(token, start))
            waiting[token] += 1
        elif token in CLOSES and waiting[CLOSES[token]]:
            _shut(stack, waiting, CLOSES[token], text, match.end(), shown)
        done = match.end()
    stack[-1].pieces.append(text[done:])
    return "".join(stack[0].pieces) + "".join("".join(unclosed.pieces).partition("\n")[2] for unclosed in stack[1:])


CLOSES = {"}}": "{{", "|}": "{|"}


def _braces(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of BRACES in order. `str.find` skips text without braces faster than the regular expression."""
    place = opened = closed = 0
    while True:
        opened = _find(text, "{", place) if opened <= place else opened
        closed = _find(text, "}", place) if closed <= place else closed
        match = BRACES.search(text, max(place, min(opened, closed) - 1))
        if not match:
            return
        yield match
        place = match.end()


def _shut(stack: list[_Open], waiting: dict[str, int], token: str, text: str, end: int, shown: Shown) -> None:
    """Close the innermost `token`, and with it everything that was opened inside it and not closed."""
    inside: list[list[str]] = []
    while True:
        top = stack.pop()
        waiting[top.token] -= 1
        inside.append(top.pieces)
        if top.token == token:
            break
    if token == "{{" and len(stack) <= MAX_RENDERED_DEPTH:
        content = "".join(piece for pieces in reversed(inside) for piece in pieces)
        stack[-1].pieces.append(shown(content, text, top.start, end))
    elif token == "{|":
        stack[-1].pieces.append("\n")


def _begins_line(text: str, place: int) -> bool:
    before = text[max(0, place - 20) : place].rpartition("\n")
    return not before[2].strip(" \t:*") and (bool(before[1]) or place < 20)
