"""Templates: what `{{name|argument|key=value}}` shows in the running text. The rules stand in realmctl/data/templates.toml."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from realmctl.corpus.languages import language_codes
from realmctl.corpus.wiki import quantities
from realmctl.corpus.wiki.arguments import Arguments, arguments
from realmctl.corpus.wiki.template_rules import GENERAL, TemplateRule, nothing, rules
from realmctl.data import words
from realmctl.tokens.scripts import is_small

MAX_NAME_CHARS = 255
"""Longest title in MediaWiki, so what is longer is no name of a template."""
FUNCTIONS: dict[str, Callable[[str], str]] = {
    "formatnum": str,
    "lc": str.lower,
    "uc": str.upper,
    "lcfirst": lambda value: value[:1].lower() + value[1:],
    "ucfirst": lambda value: value[:1].upper() + value[1:],
}
WHOLE_OR_DECIMAL = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?")
SEPARATORS = {
    ",": words("en simple ja zh ko he th ms ur sw") | {""},
    ".": words("de nl tr id da vi ro el hr sr sl ca eu gl az is"),
    "\u00a0": words("fr it pt sv cs no nb nn fi hu sk ka lt lv eo af be es ru pl uk bg hy et kk"),
}
"""What stands between thousands, and the languages of which MediaWiki 1.39 writes it so. Others have digits or groups of their own."""
FROM_FIVE_DIGITS = words("es ru pl uk bg hy et kk")
LEAD = " '\"“‘([*#:;"
NEIGHBOURHOOD = 60
"""Characters of its line that are looked at on either side of an unknown template."""
SETTING = re.compile(r"[a-z]?|yes|no|none|on|off|left|right|center|\d+px", re.IGNORECASE)
"""A positional argument that is no word for a reader, where a template is unknown."""


def render(content: str, text: str, start: int, end: int, language: str = "") -> str:
    """Return the words that `{{content}}` shows, as wikitext, or "" for a template without words.

    Args:
        content: the name and the arguments.
        text: the page, where the template stands from `start` to `end`. Of an unknown template the positional arguments
            stay where a number or a name may be meant (`_words_of_unknown`).
        language: the code of the Wikipedia, whose own rules come first.
    """
    name, _, rest = content.partition("|")
    if ":" in name:
        function, _, value = name.partition(":")
        function = function.strip().lower()
        if function == "template":
            return render(content.partition(":")[2], text, start, end, language)
        value = value.strip()
        if function == "formatnum" and not rest and WHOLE_OR_DECIMAL.fullmatch(value):
            return _grouped(value, language)
        if function in ("#if", "#ifeq"):
            given = ["", *arguments(rest).args] if function == "#if" else arguments(rest).args
            return Arguments(given[1:], {})[(value == given[0]) == (function == "#if")] if given else ""
        return FUNCTIONS[function](value) if function in FUNCTIONS else ""
    rule = _rule(name, language) if len(name) <= MAX_NAME_CHARS else nothing
    if rule is nothing or (rule is None and "\n" in content):
        return ""
    shown = rule(arguments(rest)) if rule else _words_of_unknown(rest, text, start, end)
    return f"\n{shown}" if shown[:1] in ("*", "#", ":", ";") else shown  # as MediaWiki begins the line of a list


def _grouped(number: str, language: str) -> str:
    """A number as `{{formatnum:…}}` writes it in a language."""
    mark = next((mark for mark, languages in SEPARATORS.items() if language in languages), "")
    if not mark:
        return number
    whole, point, rest = quantities.grouped(number, 5 if language in FROM_FIVE_DIGITS else 4).partition(".")
    return whole.replace(",", mark) + (point if mark == "," else "," * len(point)) + rest


@lru_cache(maxsize=4096)
def _rule(written: str, language: str) -> TemplateRule | None:
    """Return the rule of a template by its name as written, or None for an unknown one. A language's own rules come first."""
    shown = written.replace("_", " ").strip()
    return rules(language).find(shown) or rules(GENERAL).find(shown)


def _words_of_unknown(rest: str, text: str, start: int, end: int) -> str:
    """Return the positional arguments of an unknown template that stands beside other words of its line.

    They stay where a digit or a capital is next to the template or begins the arguments. Elsewhere a template that is
    not in the table is most often a note to editors. The code of a language before a word is left out.
    """
    before = text[max(0, start - NEIGHBOURHOOD) : start].rpartition("\n")[2].rstrip()
    after = text[end : end + NEIGHBOURHOOD].partition("\n")[0].lstrip(LEAD)
    if not (before.strip(LEAD) or after) or before.startswith(("|", "!")):
        return ""
    found = arguments(rest)
    args = found.args[1:] if len(found.args) > 1 and found[0] in language_codes() else found.args
    words = " ".join(argument for argument in args if not SETTING.fullmatch(argument))
    last_word = before.rpartition(" ")[2].lstrip(LEAD)
    beside = (last_word[:1], last_word[-1:], after[:1], words.lstrip(LEAD)[:1])
    return words if any(letter.isalnum() and not is_small(letter) for letter in beside) else ""
