"""Balance-tolerant passes over wikitext: hidden elements, braces, links.

Each is one walk from left to right and linear in the text whatever it holds: no unclosed thing is searched for twice,
and what does not balance loses its brackets, not the text behind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from realmctl.text.templates import render

DROPPED = ["ref", "references", "math", "chem", "ce", "gallery", "imagemap", "timeline", "hiero", "score", "graph", "mapframe", "maplink", "source", "syntaxhighlight", "pre", "templatedata", "templatestyles", "style", "script", "inputbox", "indicator", "categorytree", "rt", "includeonly"]
HIDDEN = re.compile(rf"<!--|<(/?)({'|'.join([*DROPPED, 'nowiki'])})\b([^<>]*+)>", re.IGNORECASE)
CLOSE = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in [*DROPPED, "nowiki"]}
LITERAL = str.maketrans({c: f"&#{ord(c)};" for c in "[]{}|<>'*#:;=_"})
SIMPLE_FORMULA = re.compile(r"[\w\s.,+\-=/()!−]{1,40}")


def hide(text: str) -> str:
    """Drop comments and the elements that hold no prose (<ref>, <math>, <gallery>...); escape what <nowiki> protects."""
    return "".join(_visible(text)) if "<" in text else text


def _visible(text: str) -> Iterator[str]:
    done = 0
    closes: dict[str, re.Match[str] | None] = {}
    for match in HIDDEN.finditer(text):
        if match.start() < done:
            continue
        yield text[done : match.start()]
        if match[2] is None:
            end = text.find("-->", match.end())
            done = end + 3 if end >= 0 else _line_end(text, match.end())
            continue
        name, done = match[2].lower(), match.end()
        if match[1] or match[3].rstrip().endswith("/"):
            continue
        if close := _close(text, name, done, closes):
            yield _shown(name, text[done : close.start()])
            done = close.end()
    yield text[done:]


def _close(text: str, name: str, start: int, known: dict[str, re.Match[str] | None]) -> re.Match[str] | None:
    """The end tag that belongs to the tag before `start`, or None if it was forgotten."""
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


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


BRACES = re.compile(r"\{\{([^{}]*+)\}\}|\{\{|\}\}|\{\||\|\}(?!\}(?!\}))")
MAX_RENDERED_DEPTH = 40


@dataclass(slots=True)
class _Open:
    """A template or table that is not closed yet, and the text inside it so far."""

    token: str
    pieces: list[str] = field(default_factory=list)


def unbrace(text: str) -> str:
    """Replace templates by the words they carry, and drop tables. An unclosed one loses its first line only."""
    stack = [_Open("")]
    waiting = {"{{": 0, "{|": 0}
    done = 0
    for match in BRACES.finditer(text):
        start, token = match.start(), match[0]
        stack[-1].pieces.append(text[done:start])
        if (leaf := match[1]) is not None:
            stack[-1].pieces.append(render(leaf))
        elif token == "{{" or (token == "{|" and (start == done or _begins_line(text, start))):
            stack.append(_Open(token))
            waiting[token] += 1
        elif token in CLOSES and waiting[CLOSES[token]]:
            _shut(stack, waiting, CLOSES[token])
        done = match.end()
    stack[-1].pieces.append(text[done:])
    return "".join(stack[0].pieces) + "".join(
        "".join(unclosed.pieces).partition("\n")[2] for unclosed in stack[1:]
    )


CLOSES = {"}}": "{{", "|}": "{|"}


def _shut(stack: list[_Open], waiting: dict[str, int], token: str) -> None:
    """Close the innermost `token`; whatever was left open inside it ends with it."""
    inside: list[list[str]] = []
    while True:
        top = stack.pop()
        waiting[top.token] -= 1
        inside.append(top.pieces)
        if top.token == token:
            break
    if token == "{{" and len(stack) <= MAX_RENDERED_DEPTH:
        stack[-1].pieces.append(render("".join(piece for pieces in reversed(inside) for piece in pieces)))
    elif token == "{|":
        stack[-1].pieces.append("\n")


def _begins_line(text: str, place: int) -> bool:
    before = text[max(0, place - 20) : place].rpartition("\n")
    return not before[2].strip(" \t:*") and (bool(before[1]) or place < 20)


LINKS = re.compile(
    r"\[\[([^\[\]|\n]*+)(?:\|([^\[\]\n]*+))?+\]\]([a-z]*+)"
    r"|\[\[([^\[\]|\n]{0,255}+\|)?+"
    r"|\]\]"
    r"|\[(?:(?:https?|ftps?|irc|news|gopher|telnet):)?//[^\s\[\]]++[ \t]*+([^\[\]\n]*+)\]"
    r"|\[mailto:[^\s\[\]]++[ \t]*+([^\[\]\n]*+)\]",
)
MEDIA = frozenset({"file", "image", "media", "category"})
ELSEWHERE = frozenset(
    ["wikt", "wiktionary", "s", "wikisource", "w", "wikipedia", "q", "wikiquote", "b", "wikibooks", "n", "wikinews", "v", "wikiversity", "voy", "wikivoyage", "species", "wikispecies", "commons", "c", "m", "meta", "mw", "d", "wikidata", "bugzilla", "phab", "doi", "hdl", "rfc", "arxiv", "special", "user", "template", "wp", "project", "help", "portal", "talk", "user_talk", "module", "draft", "book", "mediawiki", "mos", "cat"]
)
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z-]{2,12})?")
OPEN_ANCHOR, CLOSE_ANCHOR = "\uf8fe", "\uf8ff"
HALF, FIRST = 4096, 0xE000


def opening(number: int) -> str:
    """Marks where anchor `number` of a page starts: a private-use character and the number in two more."""
    return OPEN_ANCHOR + chr(FIRST + number // HALF) + chr(FIRST + number % HALF)


def anchor_number(two: str) -> int:
    """The number that `opening` wrote behind its first character."""
    return (ord(two[0]) - FIRST) * HALF + ord(two[1]) - FIRST


def unlink(text: str, media: frozenset[str] = MEDIA) -> tuple[str, list[str]]:
    """Replace links by their labels, marked `opening(i)` label CLOSE_ANCHOR; drop files, categories and other languages.

    `media` are the lower-case namespace names whose links are dropped with everything inside. Returns the marked text
    and the targets: targets[i] is the page title that anchor i links to.
    """
    out, targets = list[str](), list[str]()
    done, depth, limit = 0, 0, -1
    for match in LINKS.finditer(text):
        start, stop = match.span()
        if depth and start >= limit:
            depth, done = 0, limit
        target = match[1]
        if depth:
            token = text[start : start + 2]
            depth += (token == "[[" and target is None) - (token == "]]")
        else:
            out.append(text[done:start])
            if target is not None:
                out.append(_label(target, match[2], match[3], targets, media))
            elif match[4] and match[4].partition(":")[0].strip().lower() in media:
                depth = 1
                limit = _block_end(text, start, limit)
            else:
                out.append(match[5] or match[6] or "")
        done = stop
    if depth:
        done = max(done, limit)
    out.append(text[done:])
    return "".join(out), targets


def _block_end(text: str, start: int, known: int) -> int:
    """The blank line after `start`; `known` is the one found last."""
    if known > start:
        return known
    end = text.find("\n\n", start)
    return len(text) if end < 0 else end


def _label(target: str, label: str | None, trail: str, targets: list[str], media: frozenset[str]) -> str:
    if ":" in target:
        prefix, _, rest = target.partition(":")
        prefix = prefix.strip().lower().replace(" ", "_")
        if prefix in media:
            return trail
        if not prefix or prefix in ELSEWHERE:
            return (rest.rpartition(":")[2] if label is None else label) + trail
        if LANGUAGE.fullmatch(prefix) and rest[:1] != " ":
            return (label or "") + trail
    shown = target if label is None else label or target.partition(" (")[0]
    title, word = target.partition("#")[0].strip().replace("_", " "), shown.strip()
    if not title or not word:
        return shown + trail
    targets.append(title[0].upper() + title[1:])
    marked = opening(len(targets) - 1) + word + trail + CLOSE_ANCHOR
    return marked if len(word) == len(shown) else f" {marked} "
