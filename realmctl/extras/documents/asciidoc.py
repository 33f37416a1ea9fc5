"""What Asciidoctor leaves out of a source of AsciiDoc, or reads in it otherwise than pandoc does: conditions, comments, files that are included, cells."""

from __future__ import annotations

import re

VERBATIM = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,})\s*|(```)[\w,-]*\s*")
"""A line around code, or around a comment."""
ATTRIBUTE = re.compile(r":(!?)([\w][\w-]*)(!?):(?:\s+(.*))?")
CONDITION = re.compile(r"(ifdef|ifndef|ifeval|endif)::([^\[\]]*)\[(.*)\]\s*")
COMPARISON = re.compile(r"""\s*(["']?)(.*?)\1\s*(==|!=)\s*(["']?)(.*?)\4\s*""")
LONGEST_COMPARISON = 200
INCLUDE = re.compile(r"include::\S[^\[]*\[.*\]\s*")
TABLE = re.compile(r"\|={3,}\s*")
CELL = re.compile(r"(?:\d+(?:\.\d+)?[*+]|\.\d+[+])?(?:[<^>](?:\.[<^>])?|\.[<^>])?[adehlmsv]?")
"""What says before the bar of a cell how it is shown."""
BEFORE_BAR = re.compile(r"(^|[\s|])([^\s|]+)(?<!\\)(?=\|)")
SET = {
    "asciidoctor": "",
    "backend": "html5",
    "backend-html5": "",
    "basebackend": "html",
    "basebackend-html": "",
    "doctype": "article",
    "doctype-article": "",
    "filetype": "html",
    "filetype-html": "",
}
"""Attributes that Asciidoctor sets where it writes HTML."""


def as_text(source: str) -> str:
    """A source without comments, without what its conditions leave out and without lines that include a file, whose cells pandoc reads as Asciidoctor."""
    made, attributes = list[str](), dict(SET)
    fence, in_table = "", False
    shown: list[bool] = []  # of the conditions that are open: whether what is inside is shown
    for line in source.splitlines():
        if condition := CONDITION.fullmatch(line):
            line = _of_condition(condition, shown, attributes)
            if not line:
                continue
        if (shown and not shown[-1]) or INCLUDE.fullmatch(line):
            continue
        if fence:
            if line.rstrip() == fence:
                fence = ""
                if line.startswith("/"):
                    continue
            if not fence.startswith("/"):
                made.append(line)
            continue
        if found := VERBATIM.fullmatch(line):
            fence = found[1] or found[2]
            if fence.startswith("/"):
                continue
        elif line.startswith("//") and not line.startswith("///"):
            continue
        elif attribute := ATTRIBUTE.fullmatch(line):
            if attribute[1] or attribute[3]:
                attributes.pop(attribute[2].lower(), None)
            else:
                attributes[attribute[2].lower()] = attribute[4] or ""
        elif TABLE.fullmatch(line):
            in_table = not in_table
        elif in_table:
            line = _cells(line)
        made.append(line)
    return "\n".join(made) + "\n"


def _of_condition(condition: re.Match[str], shown: list[bool], attributes: dict[str, str]) -> str:
    """Open or close a condition, and return the text that it shows in one line."""
    kind, names, text = condition[1], condition[2], condition[3]
    is_around = not shown or shown[-1]
    if kind == "endif":
        if shown:
            shown.pop()
        return ""
    if kind == "ifeval":
        shown.append(is_around and _holds(text, attributes))
        return ""
    among = [name.strip().lower() in attributes for name in re.split("[,+]", names)]
    is_set = all(among) if "+" in names else any(among)
    is_shown = is_set if kind == "ifdef" else not is_set
    if text:
        return text if is_shown else ""
    shown.append(is_around and is_shown)
    return ""


def _holds(text: str, attributes: dict[str, str]) -> bool:
    """Whether two texts are equal, or not; true where something else is asked."""
    found = COMPARISON.fullmatch(text) if len(text) < LONGEST_COMPARISON else None
    if found is None:
        return True
    left, right = (
        re.sub(r"\{([\w-]+)\}", lambda name: attributes.get(name[1].lower(), ""), found[each]) for each in (2, 5)
    )
    return (left == right) == (found[3] == "==")


def _cells(line: str) -> str:
    """The line with a blank before each bar that ends a word: a letter before a bar says how its cell is shown only where it stands alone."""
    return BEFORE_BAR.sub(lambda word: word[0] + ("" if word[1] != "|" and CELL.fullmatch(word[2]) else " "), line)
