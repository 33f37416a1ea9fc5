"""RTF in the words that pandoc reads: text that is deleted goes, and breaks of pages, sections and columns and cells of tables within tables part words."""

from __future__ import annotations

import re

TOKEN = re.compile(
    r"\\[\\{}]|[{}]|\\deleted(?![a-z])(?P<off>0(?!\d))?|\\(?P<word>page|sect|column|nestcell|nestrow)(?![a-z])"
)
CODE_PAGE = re.compile(r"\\ansicpg(\d{3,5})(?!\d)")
ESCAPED = re.compile(r"\\u-?\d+ ?(?:\\'[0-9a-fA-F]{2})?|(?P<bytes>(?:\\'[0-9a-fA-F]{2})+)")
"""A character by its number, with what stands for it in old programs; and bytes of the code page."""
SHOWN = {"page": "\\par", "sect": "\\par", "column": "\\par", "nestcell": "\\tab", "nestrow": "\\par"}


def as_text(source: str) -> str:
    """A source without what is deleted, whose characters are named by Unicode and not by its code page."""
    if (page := CODE_PAGE.search(source)) and page[1] != "1252":
        source = ESCAPED.sub(lambda found: _unicode(found, f"cp{page[1]}"), source)
    made, place = list[str](), 0
    groups: list[tuple[int, bool]] = []  # where each open group begins in `made`, and whether its text is deleted

    for token in TOKEN.finditer(source):
        made.append(source[place : token.start()])
        place = token.end()
        if token[0] == "{":
            groups.append((len(made), False))
            made.append("{")
        elif token[0] == "}":
            begin, is_deleted = groups.pop() if groups else (len(made), False)
            if is_deleted:
                del made[begin:]
            else:
                made.append("}")
        elif token[0].startswith("\\deleted"):
            if groups and not token["off"]:
                groups[-1] = (groups[-1][0], True)
        else:
            made.append(SHOWN.get(token["word"] or "", token[0]))
    return "".join([*made, source[place:]])


def _unicode(found: re.Match[str], charset: str) -> str:
    """Bytes of a code page as numbers of Unicode, in a group of their own without text for old programs; what the code page has not stays."""
    try:
        text = bytes.fromhex((found["bytes"] or "").replace("\\'", "")).decode(charset)
    except (LookupError, UnicodeDecodeError):
        return found[0]
    units = memoryview(text.encode("utf-16-le")).cast("h")
    numbers = "".join(f"\\u{unit} " for unit in units)
    return f"{{\\uc0{numbers}}}" if numbers else found[0]
