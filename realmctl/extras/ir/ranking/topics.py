"""Read TREC's topics: elements `<top>` whose parts have no closing tags.

The number is the id, without zeros before it, which TREC's judgements lack. The title is the query, as in TREC's title runs. Description and
narrative tell people what is relevant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from realmctl.corpus.formats.tagged import elements
from realmctl.errors import InputError

OPENING, CLOSING = "<top>", "</top>"
PART = re.compile(r"<(num|title)>(?:\s*(?:number|topic)\s*:)?([^<]*)", re.IGNORECASE)


def is_topics(start: str) -> bool:
    """Return whether a text that begins so is a file of topics."""
    return start.lstrip().startswith(OPENING)


def topics(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (file and line, number, title) of each topic. Raises InputError for a topic without a number."""
    for where, _, lines in elements(path, OPENING, CLOSING):
        parts = {name.lower(): " ".join(text.split()) for name, text in PART.findall("\n".join(lines))}
        if not parts.get("num"):
            raise InputError(f"{where}: this topic has no <num>, by which judgements name it. Correct or remove it.")
        yield where, parts["num"].lstrip("0") or "0", parts.get("title", "")
