"""Turn wikitext (mediawiki.org/wiki/Help:Formatting) into prose: the text of paragraphs and lists, with its links.

This scanner is faster than the available libraries, and an unbalanced `[[` does not spoil the rest of a page.
Templates are not expanded; data/templates.toml has those that show words. Headings are dropped, and so are sections without
prose (References, External links).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

from realmctl.corpus.document import Link
from realmctl.corpus.signs import IDLE_JOINER
from realmctl.corpus.wiki.links import CLOSE_ANCHOR, FIRST, HALF, OPEN_ANCHOR, replace_links
from realmctl.corpus.wiki.markup import drop_hidden, render_templates
from realmctl.corpus.wiki.namespaces import Namespaces
from realmctl.data import names, table, words

BLOCK_TAGS, INLINE_TAGS = (words(table("wikitext")["tags"][kind]) for kind in ("blocks", "inline"))
"""Tags that start a new line, and tags that are removed without a trace."""
SECTIONS_WITHOUT_PROSE = frozenset(
    title for titles in table("wikitext")["sections_without_prose"].values() for title in names(titles)
)
VARIANTS = re.compile(r"-\{((?:[^{}]++|\{\{[^{}]*+\}\})*+)\}-")
HEADING = re.compile(r"\n=[^\n]*")
TABLE_LINE = re.compile(r"\n[ \t]*(?:\||!(?=[^\n]*\|))[^\n]*")
RULE = re.compile(r"\n-{4,}")
# unusual spaces, and characters that show nothing
ODD = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f\x85\xa0\u00ad\u061c\u1680\u2000-\u200b\u200e\u200f\u2028-\u202f"
    "\u205f\u2060\u2066-\u2069\u3000\ue000-\uf8ff\ufeff\ufffe\uffff]"
)
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)(?=[\s/>])[^<>]*+>")
RAISED = re.compile(r"<su([pb])>(?<=\d<su[pb]>)(?=[-−–+]?\d{1,4}</su\1>)")
FRACTION = re.compile(r"<sup>(\d{1,4})</sup>[/⁄∕]<sub>(\d{1,4})</sub>")
QUOTES = re.compile("(''+)")
BRACES = re.compile(r" *(?:\{\{+|\}\}+) *")  # single braces that became pairs when the markup between them was dropped
SWITCH = re.compile(r"__[A-Z]{3,30}__")
ENTITY = re.compile(r"&(?:#\w{1,8}|[A-Za-z]\w{1,31});?")
CLOSERS = frozenset(")]\"'”’%")
# what is left at the start of a line that began with a formula or a template: "). ", ", ", "."
LEFTOVER_MARKS = re.compile(r"\A(?:(?:[)\]]|[.,](?=[\s)\]]|$))\s*)+")
EMPTY = re.compile(r"\((?=[ ,;:،؛/–)-])[ ,;:،؛/–-]*\)")
LEADING = re.compile(r"\((?=[ ,;:،؛])(?: *[,;:،؛](?= ))* *")
LOOSE = re.compile(r" (?=[ ,;)]|[.:]\s)")
WIDE_EMPTY = re.compile("（[ 、，；：,;:/–-]*）")
WIDE_LOOSE = re.compile("(?<=（)[ 、，；：]+| (?=[、。，；：）」』])|(?<=[、，])[ 、，]*[、，](?=.)")
DOUBLED = (("。。", "。"), (",)", ")"), (";)", ")"), (",,", ","))


ENGLISH_WIKIPEDIA = Namespaces()


def prose(wikitext: str, site: Namespaces = ENGLISH_WIKIPEDIA) -> tuple[str, tuple[Link, ...]]:
    """Return the prose of one page, a paragraph or list item a line, and its links, in time linear in its length for any text.

    Args:
        wikitext: the page as its author wrote it.
        site: the names of its namespaces, and its language.
    """
    text = drop_hidden(wikitext.replace("\r\n", "\n"))
    if site.variants and "-{" in text:
        text = VARIANTS.sub(partial(_chosen, site.variants), text)
    text = render_templates(without_reference_sections(text), site.language)
    text = TABLE_LINE.sub("\n", RULE.sub("\n\n", "\n" + text))
    text = ODD.sub(_space, text).replace("&nbsp;", " ")
    text, targets = replace_links(text, site)
    text = "\n".join(paragraphs(ENTITY.sub(lambda entity: _unescaped(entity[0]), _untagged(text))))
    if "\u200c" in text or "\u200d" in text:
        text = IDLE_JOINER.sub("", text)
    return _resolved(tidy(text), targets)


def _chosen(variants: Sequence[str], match: re.Match[str]) -> str:
    """Return what `-{zh-hans:计算机; zh-hant:電腦}-` shows in the likeliest variant that it names, and nothing where it only sets a rule or
    a title (mediawiki.org/wiki/Writing_systems/Syntax).
    """
    before, bar, after = match[1].rpartition("|")
    if bar and {*before.upper().replace(" ", "").split(";")} & {"H", "T", "D", "-"}:
        return ""
    pairs = [part.partition(":") for part in (after if bar else match[1]).split(";")]
    named = {
        code.strip().lower(): word.strip() for code, colon, word in pairs if colon and code.strip().startswith("zh")
    }
    found = next((named[code] for code in variants if code in named), None)
    return found if found is not None else next(iter(named.values()), after if bar else match[1])


def without_reference_sections(text: str) -> str:
    """Drop every heading, and each section without prose up to the next heading of its level."""
    text = "\n" + text
    kept, start, skipping = list[str](), 0, 0
    for match in HEADING.finditer(text):
        line = match[0].strip()
        level = min(len(line) - len(line.lstrip("=")), len(line) - len(line.rstrip("=")), 6)
        if not level or (skipping and level > skipping):
            continue
        if not skipping:
            kept.append(text[start : match.start()])
        skipping = level if line.strip("= \t").lower() in SECTIONS_WITHOUT_PROSE else 0
        start = match.end()
    if not skipping:
        kept.append(text[start:])
    return "\n\n".join(kept)


def _space(match: re.Match[str]) -> str:
    return " " if match[0].isspace() else ""


def _untagged(text: str) -> str:
    """Drop HTML tags, quote marks and behaviour switches.

    After a digit, <sup>6</sup> becomes ^6, <sub>2</sub> _2, and <sup>1</sup>/<sub>2</sub> a separate 1/2.
    """
    if "''" in text:
        text = "\n".join(_unquoted(line) if "''" in line else line for line in text.split("\n"))
    if "<" in text:
        if "<sub>" in text and "</sup>" in text:
            text = FRACTION.sub(_fraction, text)
        text = TAG.sub(_tag, RAISED.sub(lambda raised: "^" if raised[1] == "p" else "_", text))
    if "__" in text:
        text = SWITCH.sub("", text)
    return BRACES.sub(" ", text) if "{{" in text or "}}" in text else text


def _fraction(match: re.Match[str]) -> str:
    after_digit = match.string[match.start() - 1 : match.start()].isdigit()
    return f"{' ' * after_digit}{match[1]}/{match[2]}"


def _tag(match: re.Match[str]) -> str:
    name = match[2].lower()
    if name == "li":
        return "\n" if match[1] else "\n* "
    if name == "br":
        return " "
    return "\n" if name in BLOCK_TAGS else "" if name in INLINE_TAGS else match[0]


def _unquoted(line: str) -> str:
    """A line without the marks of bold and italics. MediaWiki counts them (Parser::doQuotes): of four and of more than five the first are apostrophes, and
    where both kinds are odd, one mark of bold is an apostrophe before italics: behind a word of one letter, else behind a longer one, else behind a blank. Of several
    apostrophes one is left.
    """
    parts = QUOTES.split(line)
    texts, marks = parts[::2], list[int]()
    for place, run in enumerate(parts[1::2]):
        apostrophes = 1 if len(run) == 4 else max(0, len(run) - 5)
        texts[place] += "'" * apostrophes
        marks.append(len(run) - apostrophes)
    if sum(mark in (3, 5) for mark in marks) % 2 and sum(mark in (2, 5) for mark in marks) % 2:
        bold = [place for place, mark in enumerate(marks) if mark == 3]
        if bold:
            texts[min(bold, key=lambda place: _unlikely_apostrophe(texts[place]))] += "'"
    return QUOTES.sub("'", "".join(texts))


def _unlikely_apostrophe(before: str) -> int:
    return 2 if before.endswith(" ") else 0 if before[-2:-1] == " " else 1


@lru_cache(maxsize=4096)
def _unescaped(entity: str) -> str:
    return ODD.sub(_space, html.unescape(entity))


def tidy(text: str) -> str:
    """Repair what dropped markup left, such as "(, born 1900)", "( )" and "word ."; put one space between words."""
    text = LOOSE.sub("", LEADING.sub("(", EMPTY.sub("", text)) + "\n")
    if "（" in text or "、" in text or "，" in text:
        text = WIDE_LOOSE.sub("", WIDE_EMPTY.sub("", text))
    for doubled, single in DOUBLED:
        while doubled in text:
            text = text.replace(doubled, single)
    return text[:-1]


def paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs and list items. Lines are joined up to a blank line; a list item gets a full stop if it has no
    end.
    """
    open_lines: list[str] = []
    for line in text.split("\n"):
        words = line.strip()
        if not open_lines:
            words = LEFTOVER_MARKS.sub("", words)
        if words and words[0] not in "*#:;":
            open_lines.append(words)
            continue
        if open_lines:
            yield " ".join(open_lines)
            open_lines = []
        if item := LEFTOVER_MARKS.sub("", words.lstrip("*#:; ")):
            last = item.rstrip(CLOSE_ANCHOR)[-1:]
            stop = "。" if "\u3040" <= last <= "\u9fff" else "."
            yield item + stop if last.isalnum() or last in CLOSERS else item
    if open_lines:
        yield " ".join(open_lines)


def _resolved(text: str, targets: list[str]) -> tuple[str, tuple[Link, ...]]:
    """Remove the marks of `replace_links`, and return the text with its links."""
    out, links, length = list[str](), list[Link](), 0
    *marked, last = text.split(CLOSE_ANCHOR)
    for piece in marked:
        before, _, label = piece.rpartition(OPEN_ANCHOR)
        start = length + len(before)
        length = start + len(label) - 2
        if length > start:
            links.append((start, length, targets[(ord(label[0]) - FIRST) * HALF + ord(label[1]) - FIRST]))
        out += (before, label[2:])
    return "".join([*out, last]), tuple(links)
