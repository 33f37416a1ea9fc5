"""Marks of Markdown's dialects that CommonMark has not, as their readers show them: GitHub, MkDocs, Docusaurus and other MDX, MyST, Obsidian."""

from __future__ import annotations

import re

FENCE = re.compile(r" {0,3}(?:>\s?)*\s*(`{3,}(?=[^`]*$)|~{3,})")
TASK = re.compile(r"(\s*(?:>\s?)*(?:[-*+]|\d{1,9}[.)])\s+)\[[ xX]\]\s+")
ALERT = re.compile(r"((?:>\s?)+)\[!([\w-]{1,30})\][+-]?[ \t]*(.*)")
FOOTNOTE = re.compile(r" {0,3}\[\^([^\]\s]{1,100})\]:[ \t]*(.*)")
FOOTNOTE_MARK = re.compile(r"\[\^([^\]\s]{1,100})\](?!:)")
ABBREVIATION = re.compile(r"\*\[[^\]]{1,100}\]:")
INCLUDE = re.compile(r"\s*--8<--(?:\s|$)")
ADMONITION = re.compile(r"(\s*)(?:!!!|\?\?\?\+?)\s+([\w-]{1,30})[^\"']{0,100}(?:[\"'](.*)[\"'])?\s*")
TAB = re.compile(r"(\s*)===[!+]?\s+[\"'](.+)[\"']\s*")
CONTAINER = re.compile(r"\s*:{3,}\s*(?:\{?\.?([\w-]{1,30})\}?)?(?:\[(.*)\]|[ \t]+([^{}\[\]]+))?(?:\s*\{[^{}]*\})?\s*")
DEFINITION = re.compile(r" {0,3}[:~][ \t]+(\S.*)")
SHOWN_BY_NAME = frozenset(["note", "tip", "info", "warning", "caution", "danger", "important", "attention", "hint", "error", "abstract", "summary", "todo", "success", "question", "failure", "bug", "example", "quote", "seealso"])  # fmt: skip
"""Kinds of boxes whose name is shown where they have no title."""
CODE = re.compile(r"(?<!`)(`{1,3})(?!`)[^`\n]{1,1000}(?<!`)\1(?!`)")
INLINE = [
    (re.compile(r"%%[^%\n]+%%"), ""),
    (re.compile(r"!\[\[[^\[\]\n]+\]\]"), ""),
    (re.compile(r"\[\[[^\[\]|\n]+\|([^\[\]|\n]+)\]\]"), r"\1"),
    (re.compile(r"\[\[([^\[\]|\n]+)\]\](?!\()"), r"\1"),
    (re.compile(r"(?<![=\w])==(?=[^\s=])([^=\n]+)(?<=\S)==(?![=\w])"), r"\1"),
    (re.compile(r"(?<![+\w])\+\+([\w\"-]+(?:\+[\w\"-]+)*)\+\+(?![+\w])"), r"\1"),
    (re.compile(r"(?<![\w:]):(?:material|fontawesome|octicons|simple)-[\w-]+:"), ""),
    (re.compile(r"(?<=\S)[ \t]*\{:?\s*(?:[#.][\w-]+\s*|[\w-]+=(?:\"[^\"]*\"|[\w-]+)\s*)+\}[ \t]*$"), ""),
]
LEAF = re.compile(r"[^\s#>|`~<:=+*\-\d{!\[].*")
"""A line that is a paragraph, and so may be a term before its definition."""


def as_commonmark(text: str) -> str:
    """Markdown with the marks of its dialects as CommonMark. Code stays as it is."""
    lines = text.replace("\r\n", "\n").split("\n")
    notes = {found[1] for line in lines if (found := FOOTNOTE.fullmatch(line))}
    made, fence, boxes = list[str](), "", list[int]()
    in_comment = False
    for line in lines:
        line = _dedented(line, boxes)
        if found := FENCE.match(line):
            mark = found[1]
            if not fence:
                fence = mark
            elif mark[0] == fence[0] and len(mark) >= len(fence) and not line[found.end() :].strip():
                fence = ""
            made.append(line)
            continue
        if fence:
            made.append(line)
            continue
        if line.strip() == "%%":
            in_comment = not in_comment
            continue
        if not in_comment:
            made += _line(line, notes, boxes, made)
    return "\n".join(made)


def _dedented(line: str, boxes: list[int]) -> str:
    """A line without the indentation of the boxes and tabs that it stands in. boxes: their indentations; those that end before the line are taken off."""
    indent = len(line) - len(line.lstrip(" "))
    if line.strip():
        while boxes and indent < boxes[-1]:
            boxes.pop()
    return line[min(indent, boxes[-1]) :] if boxes else line


def _line(line: str, notes: set[str], boxes: list[int], before: list[str]) -> list[str]:
    """What becomes of a line outside of code."""
    if not line.strip():
        return [line]
    around = boxes[-1] if boxes else 0
    if box := ADMONITION.fullmatch(line):
        boxes.append(around + len(box[1]) + 4)
        return _paragraph(box[3] if box[3] is not None else _name(box[2]))
    if tab := TAB.fullmatch(line):
        boxes.append(around + len(tab[1]) + 4)
        return _paragraph(tab[2])
    if line.lstrip().startswith(":::") and (found := CONTAINER.fullmatch(line)):
        return _paragraph(found[2] or found[3] or _name(found[1] or ""))
    if ABBREVIATION.match(line) or INCLUDE.match(line):
        return []
    if note := FOOTNOTE.fullmatch(line):
        return ["", _inline(note[2], notes)]
    if alert := ALERT.fullmatch(line):
        title = alert[3] or _name(alert[2]) or alert[2].capitalize()
        return [f"{alert[1]}{title}", alert[1].rstrip()]
    if (found := DEFINITION.fullmatch(line)) and (term := _term(before)):
        del before[-term[0] :]
        return ["", "<dl><dt>", "", term[1], "", "</dt><dd>", "", _inline(found[1], notes), "", "</dd></dl>", ""]
    return [_inline(TASK.sub(r"\1", line), notes)]


def _term(before: list[str]) -> tuple[int, str] | None:
    """The paragraph of one line that ends the lines so far, and how many lines it takes with a blank one behind it."""
    blank = int(bool(before) and not before[-1].strip())
    at = len(before) - blank - 1
    if at < 0 or not LEAF.fullmatch(before[at]) or (at and before[at - 1].strip()):
        return None
    return 1 + blank, before[at]


def _paragraph(text: str) -> list[str]:
    return ["", text, ""] if text.strip() else [""]


def _name(kind: str) -> str:
    return kind.capitalize() if kind.lower() in SHOWN_BY_NAME else ""


def _inline(line: str, notes: set[str]) -> str:
    """A line without marks within it, whose code stays as it is."""
    made, place = list[str](), 0
    for code in CODE.finditer(line) if "`" in line else ():
        made += (_shown(line[place : code.start()], notes), code[0])
        place = code.end()
    return "".join([*made, _shown(line[place:], notes)])


def _shown(text: str, notes: set[str]) -> str:
    if "[^" in text:
        text = FOOTNOTE_MARK.sub(lambda mark: "" if mark[1] in notes else mark[0], text)
    while 0 <= (begin := text.find("{/*")) <= (end := text.find("*/}", max(begin, 0))):
        text = text[:begin] + text[end + 3 :]
    for pattern, shown in INLINE:
        text = pattern.sub(shown, text)
    return text
