"""The templates that show words of the running text, such as {{convert|5|km}} and {{lang|fr|mot}}. Others show
nothing.

Each rule gives what Wikipedia's documentation of the template (en.wikipedia.org/wiki/Template:NAME/doc) shows, without
footnotes, second units and ages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
BRACKETS = re.compile(r"\[\[|\]\]|\|")


@dataclass
class Arguments:
    """The arguments of a template: `args` by position, `named` by name."""

    args: list[str]
    named: dict[str, str]

    def __getitem__(self, place: int) -> str:
        return self.args[place] if -len(self.args) <= place < len(self.args) else ""


TemplateRule = Callable[[Arguments], str]


def render(content: str) -> str:
    """Return the words that `{{content}}` shows, as wikitext, or "" for a template without words."""
    name, _, rest = content.partition("|")
    name = name.strip().replace("_", " ").lower()
    rule = RULES.get(name)
    if rule:
        return rule(_arguments(rest))
    if ":" in name:
        function, _, _ = name.partition(":")
        return (
            content.partition(":")[2].partition("|")[0].strip()
            if function in ("formatnum", "lc", "uc", "lcfirst", "ucfirst")
            else ""
        )
    if name.startswith("lang-"):
        return _arguments(rest)[0]
    return ""


def _arguments(rest: str) -> Arguments:
    found = Arguments([], {})
    for part in _split(rest):
        key, equals, value = part.partition("=")
        if equals and "[" not in key and "<" not in key:
            key = key.strip()
            if key.isdigit():
                found.args.append(value.strip())
            else:
                found.named[key.lower()] = value.strip()
        else:
            found.args.append(part.strip())
    return found


def _split(text: str) -> list[str]:
    """Split at the pipes that are not inside [[links]], in one pass."""
    if "[[" not in text:
        return text.split("|")
    parts, start, depth = [], 0, 0
    for match in BRACKETS.finditer(text):
        token = match[0]
        if token == "|" and depth <= 0:
            parts.append(text[start : match.start()])
            start = match.end()
        elif token != "|":
            depth += 1 if token == "[[" else -1
    return [*parts, text[start:]]


def _first(a: Arguments) -> str:
    return a[0] or a.named.get("text", "")


def _second(a: Arguments) -> str:
    return a[1]


def _last(a: Arguments) -> str:
    return a[-1]


def _joined(separator: str) -> TemplateRule:
    return lambda a: separator.join(filter(None, a.args))


def _fixed(text: str) -> TemplateRule:
    return lambda a: text


def _prefixed(prefix: str) -> TemplateRule:
    return lambda a: f"{prefix}{a[0]}" if a[0] else ""


UNITS = {
    "F": "°F",
    "C": "°C",
    "K": "K",
    "sqkm": "km2",
    "sqmi": "sq mi",
    "mi2": "sq mi",
    "ft2": "sq ft",
    "sqft": "sq ft",
    "ha": "hectares",
}
RANGES = {"-", "–", "to", "and", "or", "by", "x", "×", "to(-)", "and(-)", "+/-", "±", "&"}


def _convert(a: Arguments) -> str:
    """`5|km` gives "5 km"; `5|to|10|km` gives "5 to 10 km"."""
    if a[1].lower() in RANGES and a[3]:
        joint = a[1].removesuffix("(-)")
        return f"{a[0]}{joint}{a[2]} {a[3]}" if joint in "-–" else f"{a[0]} {joint} {a[2]} {a[3]}"
    return f"{a[0]} {UNITS.get(a[1], a[1])}".strip()


def _date(a: Arguments) -> str:
    """`1879|3|14` gives "March 14, 1879", or with df=y "14 March 1879". A missing day or month is left out."""
    year, month, day = (a[i].lstrip("0") for i in range(3))
    if not year.isdigit():
        return a[0]
    if not month.isdigit() or not 1 <= int(month) <= 12:
        return year
    name = MONTHS[int(month) - 1]
    if not day.isdigit():
        return f"{name} {year}"
    return f"{day} {name} {year}" if a.named.get("df", "")[:1] in ("y", "1") else f"{name} {day}, {year}"


def _as_of(a: Arguments) -> str:
    lower = a.named.get("lc", "")[:1] in ("y", "1") or "alt" in a.named
    return a.named.get("alt") or f"{'as' if lower else 'As'} of {_date(a)}"


def _fraction(a: Arguments) -> str:
    parts = a.args
    return (
        f"{parts[0]} {parts[1]}/{parts[2]}" if len(parts) > 2 else "/".join(["1", *parts] if len(parts) == 1 else parts)
    )


def _value(a: Arguments) -> str:
    unit = a.named.get("u") or a.named.get("ul") or ""
    power = f"×10^{a.named['e']}" if "e" in a.named else ""
    return f"{a[0]}{power} {unit}".strip()


def _foreign(a: Arguments) -> str:
    """`nihongo`: English text (kanji, romaji)."""
    inside = ", ".join(filter(None, a.args[1:3]))
    return f"{a[0]} ({inside})" if a[0] and inside else a[0] or inside


def _link(a: Arguments) -> str:
    return f"[[{a[0]}|{a.named.get('lt') or a[0]}]]" if a[0] else ""


def _ship(a: Arguments) -> str:
    return f"{a[0]} {a[1]}".strip()


FIRST = """
    nowrap, nobr, nowr, j, noitalic, nobold, normal, big, small, smaller, larger, resize, em,
    strong, mvar, math, abbr, tooltip, define, vanchor, visible anchor, sc, smallcaps, small caps,
    caps, allcaps, sup, sub, sic, angbr, unicode, polytonic, script/hebrew, quote, blockquote,
    cquote, quotation, bquote, block indent, nastaliq, code, mono, kbd, key, keypress, flag,
    flagcountry, flagu, plainlist, flatlist, not a typo, proper name, longitem, nts, number table
    sorting, birth-date, death-date, start-date, end-date, date, nihongo2, font, railgauge, track
    gauge
"""
SECOND = "lang, transl, transliteration, rtl-lang, native name, colored link, text color, lang/ipa"


def _named(names: str, rule: TemplateRule) -> dict[str, TemplateRule]:
    return {" ".join(name.split()): rule for name in names.split(",")}


RULES: dict[str, TemplateRule] = {
    **_named(FIRST, _first),
    **_named(SECOND, _second),
    **_named("color, font color, script", _last),
    **_named("convert, cvt", _convert),
    **_named("birth date, birth date and age, birth year and age, death date, death date and age", _date),
    **_named("start date, start date and age, end date, film date, dts", _date),
    **_named("circa, c., ca.", _prefixed("c. ")),
    **_named("floruit, fl.", _prefixed("fl. ")),
    **_named("frac, fraction, sfrac", _fraction),
    **_named("chem, chem2", _joined("")),
    **_named("linktext, sortname", _joined(" ")),
    **_named("hlist, unbulleted list, ubl, ublist", _joined(", ")),
    **_named("simplenuclide, simplenuclide2, nuclide, nuclide2", lambda a: f"{a[0]}-{a[1]}" if a[1] else a[0]),
    **_named("ill, interlanguage link, interlanguage link multi", _link),
    **_named("us$, usd", _prefixed("US$")),
    **_named("eur, euro", _prefixed("€")),
    **_named("snd, snds, spaced ndash", _fixed(" – ")),
    **_named("ndash, endash", _fixed("–")),
    **_named("mdash, emdash, mdashb", _fixed("—")),
    **_named("nbsp, spaces, thinsp", _fixed(" ")),
    "as of": _as_of,
    "reign": _joined("–"),
    "val": _value,
    "nihongo": _foreign,
    "uss": _prefixed("USS "),
    "hms": _prefixed("HMS "),
    "hmas": _prefixed("HMAS "),
    "ss": _prefixed("SS "),
    "ship": _ship,
    "gbp": _prefixed("£"),
    "inr": _prefixed("₹"),
    "pow": lambda a: f"{a[0]}^{a[1]}",
    "e": _prefixed("×10^"),
    "'": _fixed("&#39;"),
    "'s": _fixed("&#39;s"),
    '"': lambda a: f'"{a[0]}"',
    "·": _fixed(" · "),
    "=": _fixed("="),
    "pipe": _fixed("&#124;"),
    "number sign": _fixed("#"),
    "sharp": _fixed("♯"),
    "flat": _fixed("♭"),
}
