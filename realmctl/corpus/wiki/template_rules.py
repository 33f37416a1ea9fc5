"""What a template shows as wikitext, by its name. The rules stand in realmctl/data/templates.toml, which says how they are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from realmctl.corpus.wiki.arguments import Arguments
from realmctl.corpus.wiki.template_functions import FUNCTIONS
from realmctl.data import names, table

TemplateRule = Callable[[Arguments], str]
GENERAL = "general"
"""The rules of all Wikipedias, beside the codes of languages."""
PART = re.compile(r"\{([^{}]+)\}|\[\[|\]\]|[\[\]{}]|[^\[\]{}]+")


def nothing(a: Arguments) -> str:
    return ""


@dataclass
class Rules:
    """The rules of one language. Names are in small letters.

    Attributes:
        by_name: the rule of a whole name.
        families: how names begin, how they end, and their rule.
        patterns: a regular expression of whole names as they are written, and the rule of a name that it matches.
    """

    by_name: dict[str, TemplateRule] = field(default_factory=dict)
    families: list[tuple[str, str, TemplateRule]] = field(default_factory=list)
    patterns: list[tuple[re.Pattern[str], Callable[[str], TemplateRule]]] = field(default_factory=list)

    def find(self, written: str) -> TemplateRule | None:
        """Return the rule of a template by its name as it is written, with blanks for underscores, or None."""
        name = written.lower()
        if rule := self.by_name.get(name):
            return rule
        for pattern, made in self.patterns:
            if pattern.fullmatch(written):
                return made(written)
        for start, end, rule in self.families:
            if name.startswith(start) and name.endswith(end):
                return rule
        return None


@cache
def rules(language: str) -> Rules:
    """Return the rules that a language has of its own, by its code, or those of all Wikipedias under GENERAL."""
    found = Rules()
    for kind, entries in table("templates").get(language, {}).items():
        if kind == "patterns":
            found.patterns += [(re.compile(entry["name"]), _with_name(entry["shows"])) for entry in entries]
        elif kind not in ("words", "dates"):
            for name, rule in KINDS[kind](entries):
                start, star, end = name.partition("*") if name != "*" else (name, "", "")
                if star:
                    found.families.append((start.lower(), end.lower(), rule))
                else:
                    found.by_name[name.lower()] = rule
    return found


Entries = Mapping[str, Any]
NamedRules = Iterator[tuple[str, TemplateRule]]


def _by_names(entries: Entries, rule_of: Callable[[str], TemplateRule]) -> NamedRules:
    """Yield the rules of a table that has names of templates at the right."""
    for left, right in entries.items():
        rule = rule_of(left)
        yield from ((name, rule) for name in names(right))


def _shows(entries: Entries) -> NamedRules:
    for left, form in entries.items():
        rule = shown_as(form)
        yield from ((name, rule) for name in names(left))


def _ships(entries: Entries) -> NamedRules:
    for prefix in names(entries["prefixes"]):
        yield prefix, _function(f"ship {prefix}")


def _function(named: str) -> TemplateRule:
    """Return a function of FUNCTIONS as a rule. Words behind its name are its second argument."""
    name, _, given = named.partition(" ")
    function = FUNCTIONS[name]
    return (lambda a: function(a, given)) if given else function


def _joined(between: str) -> TemplateRule:
    return lambda a: between.join(filter(None, a.args))


def _fixed(text: str) -> TemplateRule:
    return lambda a: text


def _amount(sign: str) -> TemplateRule:
    return lambda a: f"{sign}{a[0]}"


KINDS: dict[str, Callable[[Entries], NamedRules]] = {
    "arguments": lambda entries: _by_names(entries, shown_as),
    "shows": _shows,
    "joined": lambda entries: _by_names(entries, _joined),
    "signs": lambda entries: _by_names(entries, _fixed),
    "spaced_signs": lambda entries: _by_names(entries, lambda sign: _fixed(f" {sign} ")),
    "currencies": lambda entries: _by_names(entries, _amount),
    "functions": lambda entries: _by_names(entries, _function),
    "ships": _ships,
    "silent": lambda entries: ((name, nothing) for listed in entries.values() for name in names(listed)),
}
"""The tables of a language in templates.toml, and the rules that each gives."""


# the notation of templates.toml


@dataclass(frozen=True)
class _Value:
    """What a form has between braces: the arguments of which the first counts, and the words that are looked up for it, or None."""

    keys: tuple[str, ...]
    words: Mapping[str, str] | None = None

    def of(self, a: Arguments) -> str:
        value = next(filter(None, (a[int(key) - 1] if key.isdecimal() else a.get(key) for key in self.keys)), "")
        return value if self.words is None else self.words.get(value) or self.words.get(value.lower(), "")


_Form = list["str | _Value | _Form"]
"""Texts, values, and lists of what is shown only if all its values are given."""


def shown_as(written: str | list[str]) -> TemplateRule:
    """Return the rule of a form such as "c. {1}[ – c. {2}]", or of several, of which the first counts whose values are given."""
    forms = [_parsed(form) for form in ([written] if isinstance(written, str) else written)]
    return lambda a: next((shown.strip() for form in forms if (shown := _filled(form, a)) is not None), "")


def _with_name(written: str) -> Callable[[str], TemplateRule]:
    """Return what makes the rule of a name that a pattern matched: the form knows it as {name}."""
    rule = shown_as(written)
    return lambda name: lambda a: rule(Arguments(a.args, {**a.named, "name": name}))


def _parsed(form: str) -> _Form:
    """Return the parts of a form. Raises ValueError where a bracket or a brace has no partner, or where no table has these words."""
    inside: _Form = []
    outside: list[_Form] = []
    for match in PART.finditer(form):
        if match[1]:
            keys, _, words = match[1].partition(" in ")
            inside.append(_Value(tuple(keys.split(" or ")), _looked_up(words, form) if words else None))
        elif match[0] == "[":
            outside.append(inside)
            inside = []
        elif match[0] == "]" and outside:
            outside[-1].append(inside)
            inside = outside.pop()
        elif match[0] in "[]{}":
            raise ValueError(f"templates.toml: {match[0]} has no partner in {form!r}. Add it, or leave this one out.")
        else:
            inside.append(match[0])
    if outside or form.count("[[") != form.count("]]"):
        raise ValueError(f"templates.toml: a bracket is not closed in {form!r}. Add ] or ]].")
    return inside


def _looked_up(words: str, form: str) -> Mapping[str, str]:
    known: Mapping[str, Mapping[str, str]] = table("templates")[GENERAL]["words"]
    if words not in known:
        raise ValueError(
            f"templates.toml: {form!r} looks for [{GENERAL}.words.{words}], which is not there. There are {', '.join(known)}."
        )
    return known[words]


def _filled(form: _Form, a: Arguments) -> str | None:
    """Return what a form shows with these arguments, or None where a value outside of brackets is missing."""
    shown = list[str]()
    for part in form:
        if isinstance(part, str):
            shown.append(part)
        elif isinstance(part, list):
            shown.append(_filled(part, a) or "")
        elif value := part.of(a):
            shown.append(value)
        else:
            return None
    return "".join(shown)
