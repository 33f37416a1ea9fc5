"""Elements of tagged text that is not well-formed XML, such as `<doc>` and `<DOC>`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from realmctl.errors import InputError
from realmctl.inputs import streams

MAX_TEXT_FILE = 2**26


def elements(path: Path, opening: str, closing: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (file:line, opening tag, lines of text) of each element. Its opening tag must stand at the start of a line, and its closing tag at
    the end of one.
    """
    where, tag, inside, size = "", "", list[str](), 0
    for number, line in streams.lines(path):
        if line.startswith(opening):
            if where:
                raise InputError(
                    f"{where}: this document has no {closing} before the next begins at line {number}. Correct the file."
                )
            where, inside, size = f"{path}:{number}", [], 0
            end = len(opening) if opening.endswith(">") else line.rfind(">") + 1 or len(line)
            tag, line = line[:end], line[end:]
        elif not where and line.strip():
            raise InputError(f"{path}:{number}: text outside of {opening.strip()}. Correct or remove the line.")
        if not where:
            continue
        text = line.rstrip()
        if is_end := text.endswith(closing):
            text = text[: -len(closing)]
        if text.strip() or inside:
            inside.append(text)
        size += len(line) + 1
        if is_end:
            yield where, tag, inside
            where = ""
        if size > MAX_TEXT_FILE:
            raise InputError(f"{where}: a document of more than {MAX_TEXT_FILE // 2**20} MiB. Is {closing} missing?")
    if where:
        raise InputError(f"{where}: this document has no {closing}. The file is cut: get it again.")
