"""The templates that templates.toml cannot describe: dates, ships, coordinates and others, one function each.

A function takes the arguments of a template, and the words that stand behind its own name in templates.toml. It returns as
wikitext what the documentation of the template shows (en.wikipedia.org/wiki/Template:NAME/doc, or its kin in other languages).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from realmctl.corpus.languages import language_codes
from realmctl.corpus.wiki import quantities
from realmctl.corpus.wiki.arguments import Arguments
from realmctl.data import names, table

_WORDS: dict[str, dict[str, str]] = table("templates")["general"]["words"]
_DATES: dict[str, dict[str, str]] = table("templates")["general"]["dates"]
_MONTHS = {language: names(entry["months"]) for language, entry in _DATES.items()}


# lists and words


def last(a: Arguments) -> str:
    return next(filter(None, reversed(a.args)), "")


def list_items(a: Arguments) -> str:
    return "".join(f"\n* {item}" for item in a.args) + "\n"


def sic(a: Arguments) -> str:
    words = "".join(a.args)
    mark = "" if a.yes("hide") else "&#91;sic&#93;"
    return f"{words} {mark}".strip() if words else mark


def aside(a: Arguments) -> str:
    """A clause between dashes; `stop` leaves out the second."""
    return f"— {a[0]}" + ("" if "stop" in a.args[1:] else " —") if a[0] else ""


# dates


def date(a: Arguments) -> str:
    """`1879|3|14` gives "March 14, 1879", or with df=y "14 March 1879". A missing day or month is left out."""
    year, month, day = (a[i].lstrip("0") for i in range(3))
    if not year.isdigit():
        return a[0]
    if month.isdigit() and 1 <= int(month) <= 12:
        name = _MONTHS["en"][int(month) - 1]
    elif month.isalpha():
        name = month
    else:
        return year
    if not day.isdigit():
        return f"{name} {year}"
    return f"{day} {name} {year}" if a.yes("df") else f"{name} {day}, {year}"


def iso_date(a: Arguments) -> str:
    """`2010-05-03|dmy` gives "3 May 2010"."""
    parts = a[0].split("-")
    if len(parts) != 3 or not all(map(str.isdigit, parts)):
        return date(a)
    return date(Arguments(parts, {"df": "n" if "mdy" in a[1] else "y"}))


def start_and_end(a: Arguments) -> str:
    parts = [part for part in (date(Arguments(a.args[i : i + 3], a.named)) for i in (0, 3)) if part]
    return " – ".join(parts)


def old_style_date(a: Arguments) -> str:
    """`7 May|1840|25 April` gives "7 May 1840": the day of the new calendar."""
    return (f"{a[0]}, {a[1]}" if a[0][:1].isalpha() else f"{a[0]} {a[1]}").strip(", ")


def as_of(a: Arguments) -> str:
    word = "Since" if a.yes("since") else "As of"
    day = date(Arguments(a.args, {"df": "" if a.get("df").lower() in ("us", "mdy") else "y"}))
    return (a.get("alt") or f"{word.lower() if a.yes('lc') else word} {day}") + a.get("post")


def season(a: Arguments) -> str:
    """`2001` gives "2001–02"."""
    return f"{a[0]}–{(int(a[0]) + 1) % 100:02}" if a[0].isdecimal() and len(a[0]) == 4 else a[0]


def age(a: Arguments) -> str:
    """The whole years between two dates. The age today is not known."""
    numbers = [int(part) for part in a.args[:6] if part.isdecimal() and len(part) < 5]
    if len(numbers) < 6:
        return ""
    return str(numbers[3] - numbers[0] - (numbers[4:6] < numbers[1:3]))


def day_month_year(a: Arguments, language: str) -> str:
    """A date by position, or with blanks between its parts; a month may be a number."""
    parts, written = " ".join(a.args[:3]).split(), _DATES[language]
    if 1 < len(parts) <= 3 and parts[-2].isdecimal() and 0 < int(parts[-2]) <= 12:
        parts[-2] = _MONTHS[language][int(parts[-2]) - 1]
    if len(parts) > 1 and parts[0] == "1":
        parts[0] = written.get("first_day", "1")
    return written["between"].join(parts)


def old_style(a: Arguments, language: str) -> str:
    """`12|2|1809|31|1` gives "31 января (12 февраля) 1809"."""
    months = {str(number): name for number, name in enumerate(_MONTHS[language], 1)}
    month, old = months.get(a[1].lstrip("0"), a[1]), months.get(a[4].lstrip("0"), a[4])
    return f"{a[3]} {old} ({a[0]} {month}) {a[2]}".replace("  ", " ") if a[3] else f"{a[0]} {month} {a[2]}".strip()


def centuries(a: Arguments, word: str) -> str:
    """`XIX|e|et|XX|e` and `XIX|e|XX|e` give "XIXe et XXe siècles"."""
    numbers = [part for part in a.args if re.fullmatch("[IVXL]+", part)]
    shown = [number + ("er" if number == "I" else "e") for number in numbers[:2]]
    return f"{f' {word} '.join(shown)} siècle{'s' * (len(shown) > 1)}" if shown else ""


# languages


def foreign(a: Arguments) -> str:
    """`nihongo`: English text (kanji, romaji)."""
    inside = ", ".join(filter(None, a.args[1:4]))
    return (f"{a[0]} ({inside})" if a[0] and inside else a[0] or inside) + a[4]


def foreign_first(a: Arguments) -> str:
    """`nihongo3`: romaji (English text, kanji)."""
    return foreign(Arguments(a.args[:3], {}))


def labelled(a: Arguments, labels: str) -> str:
    """`s=北京|p=Běijīng` gives "simplified Chinese: 北京; pinyin: Běijīng"."""
    known = _WORDS[labels]
    words = [f"{known[key]}: {word}" for key, word in a.named.items() if key in known and word]
    return "; ".join([*filter(None, a.args[:1]), *words])


# names


def interlanguage_link(a: Arguments) -> str:
    """`Title|de|...` links to the article; the older form has the language first."""
    args = a.args[1:] if a[0].lower() in language_codes() and a[1] else a.args
    return f"[[{args[0]}|{a.get('lt') or args[0]}]]" if args and args[0] else ""


def ship(a: Arguments, prefix: str | None = None) -> str:
    """`ship|HMS|Hood|51` gives "HMS Hood (51)". The last argument adds up what is shown: prefix 4, name 2, number 1."""
    args = a.args if prefix is None else [prefix, *a.args]
    start, name, number, form = [*args, "", "", "", ""][:4]
    shown = int(form) if form in {"1", "2", "3", "4", "5", "6"} else 7
    before = [start] * bool(shown & 4) + [name] * bool(shown & 2)
    words = " ".join(filter(None, before))
    if not shown & 1 or not number:
        return words
    return f"{words} ({number})" if words else number


def authors(a: Arguments) -> str:
    """`harvtxt|Boolos|Jeffrey|1974` gives "Boolos & Jeffrey (1974)"."""
    *found, year = [part for part in a.args if part] or [""]
    if len(found) > 3:
        return f"{found[0]} et al. ({year})"
    joined = " & ".join(filter(None, [", ".join(found[:-1]), *found[-1:]]))
    return f"{joined} ({year})" if joined else year


def roads(a: Arguments) -> str:
    """`I|5|US|101` gives "I-5 / US 101"."""
    pairs = [*zip(a.args[::2], a.args[1::2], strict=False)]
    return " / ".join(f"{kind}-{number}" if kind == "I" else f"{kind} {number}" for kind, number in pairs)


def us_patent(a: Arguments) -> str:
    return f"U.S. Patent {quantities.grouped(a[0])}"


# numbers


def grouped_number(a: Arguments) -> str:
    return quantities.grouped(a[0])


def roman(a: Arguments) -> str:
    """`14` gives XIV."""
    if not a[0].isdecimal() or not 0 < int(a[0]) < 4000:
        return a[0]
    left, shown = int(a[0]), ""
    signs = ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I")
    for value, sign in zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), signs, strict=True):
        shown, left = shown + sign * (left // value), left % value
    return shown


def ordinal(a: Arguments) -> str:
    if not a[0].isdecimal():
        return a[0]
    final = 0 if a[0][-2:-1] == "1" else int(a[0][-1])
    return a[0] + {1: "st", 2: "nd", 3: "rd"}.get(final, "th")


def duration(a: Arguments) -> str:
    """`m=3|s=20` and `3:20` give "3:20"."""
    numbers = [a.named.get(unit, "") for unit in "hms"] if a.named else list(a.args)
    while numbers and not numbers[0]:
        del numbers[0]
    return ":".join([*numbers[:1], *(f"{number:0>2}" for number in numbers[1:])])


def coordinates(a: Arguments) -> str:
    """`13|19|N|169|9|W` gives "13°19′N 169°9′W", and `43.65|-79.38` "43.65°N 79.38°W"."""
    if a.get("display").strip() in ("title", "t"):
        return ""
    numbers, places = list[str](), list[str]()
    for part in a.args[:8]:
        if part in ("N", "S", "E", "W"):
            places.append("".join(map("".join, zip(numbers, "°′″", strict=False))) + part)
            numbers = []
        elif part.replace(".", "", 1).lstrip("-").isdecimal():
            numbers.append(part)
    if not places and len(numbers) >= 2:
        for number, (positive, negative) in zip(numbers, [("N", "S"), ("E", "W")], strict=False):
            places.append(f"{number.lstrip('-')}°{negative if number.startswith('-') else positive}")
    return " ".join(places)


def index_and_power(a: Arguments) -> str:
    """`p=2|b=4` stands above and below its letter; `p=+0.1|b=-0.2` is an uncertainty, "+0.1−0.2"."""
    above, below = a.get("p") or a[0], a.get("b") or a[1]
    if above[:1] in ("+", "±") and below[:1] in ("-", "−"):
        return f"{above}−{below[1:]}"
    return f"<sub>{below}</sub><sup>{above}</sup>"


FUNCTIONS: dict[str, Callable[..., str]] = {
    function.__name__: function
    for function in (
        *(last, list_items, sic, aside),
        *(date, iso_date, start_and_end, old_style_date, as_of, season, age, day_month_year, old_style, centuries),
        *(foreign, foreign_first, labelled, interlanguage_link, ship, authors, roads, us_patent),
        *(grouped_number, roman, ordinal, duration, coordinates, index_and_power),
        *(quantities.convert, quantities.value, quantities.gaps, quantities.fraction, quantities.plus_minus),
        *(quantities.power_of_ten, quantities.gauge, quantities.population_density, quantities.percentage),
    )
}
"""The functions by the name that templates.toml has for them."""
