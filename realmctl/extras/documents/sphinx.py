"""What Sphinx shows of its own roles and directives in reStructuredText. pandoc passes on how they are written."""

from __future__ import annotations

import re
from typing import Any

INSTRUCTIONS = (
    "codeauthor",
    "currentmodule",
    "default-domain",
    "highlight",
    "include",
    "index",
    "literalinclude",
    "meta",
    "module",
    "moduleauthor",
    "sectionauthor",
    "tabularcolumns",
    "testcleanup",
    "testsetup",
    "toctree",
)
"""Directives whose content no reader of the page sees, with or without a domain such as `py:`."""
VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}
PLAIN_ROLES = frozenset({"abbr", "command", "dfn", "file", "guilabel", "kbd", "menuselection", "program", "samp"})
"""Roles that link to nothing, so that their text is shown as it is."""
SERIES = {"pep": "PEP", "rfc": "RFC"}
NAMED_LINK = re.compile(r"(.+?)\s*<[^<>]+>", re.DOTALL)
LAST_NAME = re.compile(r"~(?:.*[.:])?([^.:]+(?:\(\))?)", re.DOTALL)
MARKED_NAME = re.compile(r"(?<!\S)[!~][A-Za-z_][\w.]*")
BUILDERS_WORDS = 6
"""An expression of `only` has at most so many words, such as `not latex`."""


def as_shown(html: str) -> str:
    """HTML that pandoc wrote of a source of Sphinx, with the text that Sphinx shows."""
    from selectolax.lexbor import LexborHTMLParser

    page = LexborHTMLParser(html)
    instructions = ", ".join(f"div.{name}, div[class$=':{name}']" for name in INSTRUCTIONS)
    while (unseen := page.css_first(instructions)) is not None:
        unseen.decompose()
    for code in page.css("code.interpreted-text"):
        code.replace_with(text_of_role(code.attributes.get("role") or "", code.text()))
    for only in page.css("div.only"):
        condition = only.css_first("p")
        if condition is not None and condition.parent == only and len(condition.text().split()) <= BUILDERS_WORDS:
            condition.decompose()
    for name, words in VERSIONS.items():
        for told in page.css(f"div.{name}"):
            if (paragraph := told.css_first("p")) is not None:
                _say_version(paragraph.child, words)
    for title in page.css("head > title"):
        if title.child is not None:
            title.child.replace_with(MARKED_NAME.sub(lambda name: text_of_role("", name[0]), title.text()))
    return page.html or ""


def text_of_role(role: str, text: str) -> str:
    """What is shown of a role such as `ref` or `py:meth`: the label of `label <target>`, `C` of `~a.b.C`, and `run` of `!run`."""
    name = role.rpartition(":")[2]
    if name in PLAIN_ROLES:
        return text
    if name in SERIES:
        return f"{SERIES[name]} {text}"
    if named := NAMED_LINK.fullmatch(text):
        return named[1]
    if short := LAST_NAME.fullmatch(text):
        return short[1]
    return text.removeprefix("!")


def _say_version(first: Any, words: str) -> None:
    """Write the words before the version that begins a paragraph, and a colon behind it."""
    if first is None or first.tag != "-text":
        return
    version, _, rest = first.text(deep=False).strip().partition(" ")
    is_all = not rest and first.next is None
    first.replace_with(f"{words} {version}{'.' if is_all else ': '}{rest}{'' if first.next is None else ' '}")
