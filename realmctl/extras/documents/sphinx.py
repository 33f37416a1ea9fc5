"""What Sphinx shows of its own roles and directives in reStructuredText. pandoc passes on how they are written, and loses what it takes for its own."""

from __future__ import annotations

import re
from itertools import takewhile
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
    "namespace",
    "program",
    "sectionauthor",
    "tabularcolumns",
    "testcleanup",
    "testsetup",
    "toctree",
)
"""Directives whose content no reader of the page sees, with or without a domain such as `py:`."""
OBJECTS = frozenset(
    [
        "attribute",
        "class",
        "classmethod",
        "cmdoption",
        "confval",
        "data",
        "decorator",
        "decoratormethod",
        "describe",
        "envvar",
        "exception",
        "function",
        "method",
        "object",
        "opcode",
        "option",
        "pdbcommand",
        "property",
        "staticmethod",
        "type",
    ]
)
"""Directives that describe an object by its signature, without a domain; with one all do that are no instructions."""
KINDS = {
    **{name: name for name in ("class", "classmethod", "concept", "enum", "exception", "property", "struct", "union")},
    "enum-class": "enum class",
    "enum-struct": "enum struct",
    "staticmethod": "static",
}
"""What stands before the name of an object."""
BEFORE_THE_NAME = ("abstract", "async", "classmethod", "final", "static", "staticmethod")
"""Options of an object that are shown before its name."""
LITERAL = frozenset(
    [
        "code",
        "code-block",
        "doctest",
        "highlight",
        "math",
        "parsed-literal",
        "productionlist",
        "raw",
        "sourcecode",
        "testcode",
        "testoutput",
    ]
)
DIRECTIVE = re.compile(r"(\s*)\.\. (?:([a-z]\w*):)?([a-z][\w+-]*)::(?: +(.*))?", re.IGNORECASE)
OPTION = re.compile(r"\s+:([\w-]+):(?:\s+(.*))?")
CLASSES_OF_DOCUTILS = re.compile(r"[a-z][a-z0-9-]*(?: [a-z][a-z0-9-]*)*")
"""What docutils' own directive `class` has: names of classes of the page, and no class of a program."""
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
NO_TITLE = (".. raw:: html", "", "   <!-- -->", "")
"""Before a source, so that its first headings and the fields or definitions below them stay text. pandoc would make metadata of them, which it does not show."""
BUILDERS_WORDS = 6
"""An expression of `only` has at most so many words, such as `not latex`."""


MOST_OPTIONS = 20


def as_text(source: str) -> str:
    """A source in which each object that a directive describes has its signatures as paragraphs, and no directive has a domain: pandoc takes one
    with a domain for a comment, and a class for one of the page.
    """
    lines, made, at = source.expandtabs().splitlines(), list[str](), 0
    literal: int | None = None  # the indentation of what a block of code belongs to
    while at < len(lines):
        line = lines[at]
        indent = len(line) - len(line.lstrip())
        at += 1
        if literal is not None and (not line.strip() or indent > literal):
            made.append(line)
            continue
        literal = None
        found = DIRECTIVE.fullmatch(line)
        if found is None:
            literal = indent if line.rstrip().endswith("::") else None
        elif _is_object(found):
            first = at
            while at < len(lines) and lines[at].strip() and len(lines[at]) - len(lines[at].lstrip()) > indent:
                at += 1
            below = at
            while below < len(lines) and not lines[below].strip():
                below += 1
            inner = lines[below] if below < len(lines) else ""
            inner_indent = len(inner) - len(inner.lstrip())
            margin = " " * (inner_indent if inner_indent > indent else indent + 3)
            made += [f"{found[1]}.. object::", ""]
            for signature in _signatures(found, lines[first:at]):
                made += [f"{margin}{signature}", ""]
            continue
        else:
            literal = indent if found[3].lower() in LITERAL or (found[4] or "").endswith("::") else None
            if literal is not None and (caption := _caption(lines[at : at + MOST_OPTIONS])):
                made += [f"{found[1]}{caption}", ""]
            if found[2]:
                line = f"{found[1]}.. {found[3]}:: {found[4] or ''}"
        made.append(line)
    return "\n".join([*NO_TITLE, *made, ""])


def _caption(below: list[str]) -> str:
    """The caption among the options of a block of code, which Sphinx shows above it."""
    options = takewhile(lambda found: found is not None, map(OPTION.fullmatch, below))
    return next((found[2] or "" for found in options if found is not None and found[1] == "caption"), "")


def _is_object(directive: re.Match[str]) -> bool:
    domain, name, text = directive[2], directive[3].lower(), directive[4] or ""
    if name in INSTRUCTIONS or not text.strip():
        return False
    if name == "class" and domain is None:
        return CLASSES_OF_DOCUTILS.fullmatch(text.strip()) is None
    return domain is not None or name in OBJECTS


def _signatures(directive: re.Match[str], below: list[str]) -> list[str]:
    """The signatures of an object as Sphinx shows them: of those of the directive and the lines below it, of which the last may be options."""
    options = {found[1]: found[2] or "" for line in below if (found := OPTION.fullmatch(line))}
    given = "\n".join([directive[4], *(line.strip() for line in below if not OPTION.fullmatch(line))])
    name = directive[3].lower()
    words = [*(word for word in BEFORE_THE_NAME if word in options), *filter(None, [KINDS.get(name)])]
    behind = (f": {options['type']}" if "type" in options else "") + (
        f" = {options['value']}" if "value" in options else ""
    )
    signatures = [
        " ".join([*([] if line.startswith("template") else words), line.strip()]) + behind
        for line in given.replace("\\\n", "").split("\n")
    ]
    return [each if "`" in each else f"``{each}``" for each in signatures]


def as_shown(html: str) -> str:
    """HTML that pandoc wrote of a source of Sphinx, with the text that Sphinx shows."""
    from selectolax.lexbor import LexborHTMLParser

    page = LexborHTMLParser(html)
    instructions = ", ".join(f"div.{name}" for name in INSTRUCTIONS)
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
