"""What the templates of numbers show: {{convert}}, {{val}}, fractions, powers, uncertainties.

As Wikipedia shows them, with three exceptions: units are short ("5 km"), {{convert}} shows the value that the author wrote
and not the converted one, and <sup> after a digit is "^" (wikitext.py).
Source: en.wikipedia.org/wiki/Template:NAME/doc.
"""

from __future__ import annotations

import re
from functools import lru_cache

from realmctl.corpus.wiki.arguments import Arguments
from realmctl.data import table, words

NUMBER = re.compile(r"[-−–+]?[\d.,]*\d[\d.,]*(?:e[-−+]?\d{1,3}|\.?)", re.IGNORECASE)
MIXED = re.compile(r"(?:([-−]?\d[\d,]*)[-+])?(\d+)//?(\d+)")
UNITS: dict[str, str] = table("units")["units"]
MULTIPLES: dict[str, str] = table("units")["multiples"]
PLURALS, METRIC, SMALLER = (words(table("units")["kinds"][kind]) for kind in ("plurals", "metric", "smaller"))
RANGES: dict[str, str] = table("units")["between"]
"""What stands between the two numbers of a range, and what is printed there."""
POWERS = {"sq": "2", "cu": "3"}
AREA = re.compile(r"(?:(sq|cu)(\w+)|(ft|in|yd|mi|foot)([23]))")
MULTIPLE = re.compile(r"(?:(e3|e6|e9|e12)|([MG])(?=USgal|impgal|oilbbl|acre))(.+)")
MAX_UNIT_CHARS = 60


def convert(a: Arguments) -> str:
    """`5|km` gives "5 km", `5|to|10|km` "5 to 10 km", `3|x|4|x|5|m` "3 x 4 x 5 m", and `5|ft|11|in|cm` "5 ft 11 in"."""
    values, place = [_number(a, a[0])], 1
    while a[place].lower() in RANGES and _is_number(a[place + 1]):
        values.append(RANGES[a[place].lower()] + _number(a, a[place + 1]))
        place += 2
    words = "".join(values)
    unit = a[place]
    single = words == "1" or a.get("adj", "sing") in ("on", "mid")
    shown = _with_unit(words, unit[:MAX_UNIT_CHARS], single)
    while place + 2 < len(a.args) and a[place + 2] in SMALLER and _is_number(a[place + 1]) and len(values) == 1:
        shown += f" {_number(a, a[place + 1])} {unit_name(a[place + 2])}"
        place += 2
    if a.get("adj") == "mid" and (middle := " ".join(a.args[place + 2 :]).strip()):
        shown += middle if middle[0] == "-" else f" {middle}"
    return shown


def _is_number(text: str) -> bool:
    return bool(NUMBER.fullmatch(text) or MIXED.fullmatch(text))


def _number(a: Arguments, text: str) -> str:
    """Return a number as it is printed: "1300" is "1,300", "1+1/2" is "1 1/2", and "5e6" is "5×10^6"."""
    if text.isdecimal() and not a.named.get("comma"):
        return grouped(text)
    if mixed := MIXED.fullmatch(text):
        return f"{mixed[1]} {mixed[2]}/{mixed[3]}" if mixed[1] else f"{mixed[2]}/{mixed[3]}"
    if not NUMBER.fullmatch(text):
        return text
    if text[0] == "-":
        text = "−" + text[1:]
    mantissa, exponent, power = text.lower().partition("e")
    if exponent:
        return f"{mantissa}×10^{power.lstrip('+').replace('-', '−')}"
    return text if a.get("comma") in ("off", "gaps") else grouped(text, 5 if a.get("comma") == "5" else 4)


def grouped(text: str, least: int = 4) -> str:
    """Return a number with commas between thousands, from `least` digits before the point on."""
    sign = text[:1] if text[:1] in "-−+" else ""
    whole, point, rest = text[len(sign) :].partition(".")
    return (
        f"{sign}{int(whole):,}{point}{rest}"
        if whole.isdecimal() and least <= len(whole) < 40 and whole[0] != "0"
        else text
    )


def _with_unit(value: str, unit: str, single: bool) -> str:
    if unit.startswith("PD/"):
        return f"{value}/{unit_name(unit[3:])}"
    name = unit_name(unit)
    if single and name.endswith(tuple(PLURALS)):
        name = name[:-1]
    return f"{value} {name}".strip()


@lru_cache(maxsize=1024)
def unit_name(code: str) -> str:
    """Return how a unit is printed: "sqmi" is "sq mi", "e6acre" "million acres", and "oilbbl/d" "bbl/d"."""
    if code in UNITS:
        return UNITS[code]
    if multiple := MULTIPLE.fullmatch(code):
        return f"{MULTIPLES[multiple[1] or multiple[2]]} {unit_name(multiple[3])}"
    above, per, below = code.partition("/")
    if above and per:
        return f"{unit_name(above)}/{'/'.join(map(unit_name, below.split('/')))}"
    if area := AREA.fullmatch(code):
        kind, base = area[1] or {"2": "sq", "3": "cu"}[area[4]], area[2] or area[3]
        return f"{base}{POWERS[kind]}" if base in METRIC else f"{kind} {unit_name(base)}"
    return code


def fraction(a: Arguments) -> str:
    """`2` gives 1/2, `1|2` 1/2, and `5|1|2` 5 1/2. wikitext.py puts a space between a digit and the fraction after it."""
    parts = [part for part in a.args if part][:3]
    whole = f"{parts.pop(0)} " if len(parts) > 2 else ""
    above, below = (["1", *parts] if len(parts) == 1 else parts) or ["", ""]
    if above.isdecimal() and below.isdecimal():
        return f"{whole}<sup>{above}</sup>/<sub>{below}</sub>"
    return f"{whole}{_term(above)}/{_term(below)}"


def _term(text: str) -> str:
    return f"({text})" if re.search(r"[\w'] *[-+−/·×] *[\w']| ", text) else text


def value(a: Arguments) -> str:
    """`val`: `1.5|e=3|u=m` gives "1.5×10^3 m", `5|0.1` "5±0.1", `5|+1|-2` "5+1−2", and `5|-|7` "5–7"."""
    shown, rest = _plain(a, a[0]), a.args[1:]
    while len(rest) > 1 and rest[0] in RANGES and _is_number(rest[1]):
        shown += RANGES[rest[0]] + _plain(a, rest[1])
        rest = rest[2:]
    if rest and rest[0]:
        first = rest[0]
        if first[0] in "+-−(":
            shown += "".join(part.replace("-", "−", 1) for part in rest[:2])
        else:
            shown += f"±{first}"
        if "e" in a.named:
            shown = shown if first[0] == "(" else f"({shown})"
    if power := a.named.get("e", "").replace("-", "−"):
        shown += f"×10^{power}" if shown else f"10^{power}"
    unit, per = a.get("u", "ul"), a.get("up", "upl")
    unit = f"{unit}/{per}" if per else unit
    shown = f"{a.get('p', 'pre')}{shown}{a.get('s', 'suf')}"
    return f"{shown}{unit}" if unit[:1] in ("%", "°") and unit[1:2] not in ("C", "F") else f"{shown} {unit}".strip()


def _plain(a: Arguments, text: str) -> str:
    text = text.replace("-", "−", 1) if text.startswith("-") else text
    mantissa, exponent, power = text.partition("e")
    if exponent and _is_number(mantissa):
        return f"{mantissa}×10^{power.lstrip('+').replace('-', '−')}"
    return grouped(text) if a.get("fmt") == "commas" else text


def population_density(a: Arguments) -> str:
    """`3645257|640081.87|km2|prec=1` gives 5.7/km2. Without `prec` it is not known how the page rounds, and nothing is shown."""
    people, area, digits = a[0].replace(",", ""), a[1].replace(",", ""), a.get("prec")
    if not (_is_number(people) and _is_number(area) and digits.isdecimal() and len(digits) == 1 and float(area) > 0):
        return ""
    return f"{float(people) / float(area):,.{digits}f}/{unit_name(a[2] or 'km2')}"


def percentage(a: Arguments) -> str:
    """`1|3|1` gives 33.3%: a share of two numbers, with the digits after the point that the third argument names."""
    part, whole, digits = a[0].replace(",", ""), a[1].replace(",", ""), a[2] or "0"
    if not (_is_number(part) and _is_number(whole) and digits.isdecimal() and len(digits) == 1 and float(whole)):
        return ""
    return f"{100 * float(part) / float(whole):.{digits}f}%"


def gaps(a: Arguments) -> str:
    """`12|345` gives 12345, a number whose groups stand apart."""
    power = a.named.get("e", "").replace("-", "−")
    shown = "".join(a.args) + (f"×10^{power}" if power else "")
    return f"{a.get('lhs')}{shown} {a.get('u')}".strip()


def plus_minus(a: Arguments) -> str:
    """`1` gives ±1, and `0.2|0.3` gives +0.2−0.3."""
    return f"+{a[0].lstrip('+')}−{a[1].lstrip('-−')}" if a[1] else f"±{a[0]}"


def power_of_ten(a: Arguments) -> str:
    """`24` gives ×10^24."""
    return f"×10^{a[0].replace('-', '−')}" if a[0] else ""


def gauge(a: Arguments) -> str:
    """`1435mm` gives "1,435 mm", and `4ft8.5in` "4 ft 8.5 in"."""
    if a[0].lower() in ("sg", "ussg", "uksg", "standard"):
        return "1,435 mm"
    parts = re.findall(r"([\d.,/]+) ?(mm|cm|m|ft|in)(?![a-z])", a[0])
    return " ".join(f"{grouped(number)} {unit}" for number, unit in parts) or a[0]
