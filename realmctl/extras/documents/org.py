"""Org in the marks that pandoc reads: it drops a target that links itself (`<<<words>>>`) with its words."""

from __future__ import annotations

import re

BLOCK = re.compile(r"^[ \t]*#\+(BEGIN_(?:SRC|EXAMPLE|EXPORT|COMMENT))\b.*?(?:^[ \t]*#\+END_|\Z)|<<<([^<>\n]+)>>>", re.IGNORECASE | re.DOTALL | re.MULTILINE)  # fmt: skip


def as_text(source: str) -> str:
    """A source whose radio targets are words; blocks of code stay."""
    return BLOCK.sub(lambda found: found[0] if found[1] else found[2], source)
