"""Tables that are read, not run: what realmctl knows of languages and of Wikipedia, as TOML. Each file begins with its source and licence."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def table(name: str) -> dict[str, Any]:
    """Return what the file `name`.toml says. A process reads it once, so nobody may change what this returns."""
    import tomllib
    from importlib import resources

    return tomllib.loads((resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8"))


def words(text: str) -> frozenset[str]:
    """Return the words of a list that blanks and lines separate."""
    return frozenset(text.split())


def names(text: str | list[str]) -> list[str]:
    """Return the names of a list that commas separate, with single blanks inside. A list in TOML has names with commas."""
    return [" ".join(name.split()) for name in (text.split(",") if isinstance(text, str) else text)]
