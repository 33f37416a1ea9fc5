"""RTF in the words that pandoc reads: text that is deleted goes, and breaks of pages, sections and columns and cells of tables within tables part words."""

from __future__ import annotations

import re

TOKEN = re.compile(
    r"\\[\\{}]|[{}]|\\deleted(?![a-z])(?P<off>0(?!\d))?|\\(?P<word>page|sect|column|nestcell|nestrow)(?![a-z])"
)
SHOWN = {"page": "\\par", "sect": "\\par", "column": "\\par", "nestcell": "\\tab", "nestrow": "\\par"}


def as_text(source: str) -> str:
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
