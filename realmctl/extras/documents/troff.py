"""Man pages in the macros that pandoc reads: of groff's it drops `.SM`, `.SB` and `.MR` with their words, and takes what `.ig` hides for text."""

from __future__ import annotations

import re

MACRO = re.compile(r"[.'][ \t]*(SM|SB|MR|ig)(?:[ \t]+(.*))?")
ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|(\S+)')


def as_text(source: str) -> str:
    """A man page whose small text is text, whose references are `.BR`, and without what it hides."""
    made, hidden_until = list[str](), ""
    for line in source.split("\n"):
        if hidden_until:
            hidden_until = "" if line.rstrip() == hidden_until else hidden_until
            continue
        found = MACRO.fullmatch(line.rstrip())
        if not found:
            made.append(line)
        elif found[1] == "ig":
            hidden_until = f".{(found[2] or '.').split()[0]}"
        elif found[1] == "SB":
            made.append(f".B {found[2] or ''}".rstrip())
        elif found[2]:
            made.append(_small(found[2]) if found[1] == "SM" else _reference(found[2]))
    return "\n".join(made)


def _arguments(text: str) -> list[str]:
    return [quoted.replace('""', '"') if quoted else plain for quoted, plain in ARGUMENT.findall(text)]


def _small(text: str) -> str:
    return f"\\&{' '.join(_arguments(text))}"


def _reference(text: str) -> str:
    """`.MR ls 1 ,` is ls(1), and what follows."""
    page, section, *rest = [*_arguments(text), ""]
    return f'.BR "{page}" "{f"({section})" if section else ""}{"".join(rest)}"'
