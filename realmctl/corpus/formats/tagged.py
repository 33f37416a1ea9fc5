"""Elements of tagged text that is not well-formed XML, such as `<doc>` and `<DOC>`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from realmctl.errors import InputError
from realmctl.inputs import streams

MAX_TEXT_FILE = 2**26


def elements(path: Path, opening: str, closing: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (file:line, first line, further lines) of each element. Its tags must stand at the start of a line."""
    where, first, inside, size = "", "", list[str](), 0
    for number, line in streams.lines(path):
        if not where:
            if line.startswith(opening):
                where, first, inside, size = f"{path}:{number}", line, [], 0
            elif line.strip():
                raise InputError(f"{path}:{number}: text outside of {opening.strip()}. Correct or remove the line.")
        elif line.startswith(closing):
            yield where, first, inside
            where = ""
        else:
            inside.append(line)
            size += len(line) + 1
        if size > MAX_TEXT_FILE:
            raise InputError(f"{where}: a document of more than {MAX_TEXT_FILE // 2**20} MiB. Is {closing} missing?")
    if where:
        raise InputError(f"{where}: this document has no {closing}. The file is cut: get it again.")
