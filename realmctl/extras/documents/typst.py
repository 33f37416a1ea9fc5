"""Typst in the functions that pandoc reads: it drops what some functions show with their words, and the space between paragraphs."""

from __future__ import annotations

import re

TOKEN = re.compile(
    r"(?P<kept>(?P<fence>`{3,}).*?(?P=fence)|`[^`]*`|//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|\\.)"
    r"|#(?:highlight|overline|rotate|move|scale|skew|par)\b(?:\([^()\[\]\n\"]*\))?(?=\[|\(\")"
    r"|(?P<space>#v\([^()\n]*\))",
    re.DOTALL,
)


def as_text(source: str) -> str:
    """A source whose turned, moved and marked text stands in boxes, and whose vertical space ends a paragraph; code, comments and strings stay."""
    return TOKEN.sub(lambda found: found["kept"] or ("\n\n" if found["space"] else "#box"), source)
