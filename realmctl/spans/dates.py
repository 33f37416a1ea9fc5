"""Find dates by rules: those of English stand here, those of other languages in calendars.py.

REALM masks dates that a regular expression found (section 3.4), but did not release it. These rules are this project's
own. Days, months with a year or a day, decades, centuries and ISO dates are recognised by their form. A number from
1000 to 2099 is a year only in a context that says so: "in 1905", "(1905)", "1905–1907", "the 1905 treaty"; but not
"1500 people", "page 1905" or "$2000".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from realmctl.corpus.languages import plain_language
from realmctl.spans.calendars import CALENDARS
from realmctl.spans.salient import DATE, SalientSpan, resolve_overlaps

_MONTH_NAMES = "January February March April May June July August September October November December"
_WEEKDAY_NAMES = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_CALENDAR = frozenset((*_MONTH_NAMES.split(), *_WEEKDAY_NAMES.split()))

_MONTH = rf"(?:{_MONTH_NAMES.replace(' ', '|')}|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\b\.?)"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_NTH_DAY = rf"{_DAY}(?:st|nd|rd|th)?"
_YEAR = r"(?:1\d{3}|20\d{2})"
_DASH = r"\s?[-–—/]\s?"
_ERA = r"(?:\s?(?:BCE|BC|CE|AD)\b)"
_ORDINAL = (
    r"(?:\d{1,2}(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth"
    r"|thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|twenty-first)"
)
_ORDINALS = rf"{_ORDINAL}(?:(?:,?\s(?:and|or|to)\s|,\s|{_DASH}){_ORDINAL})*"

_SHAPES = (
    rf"\b{_NTH_DAY}(?:{_DASH}{_NTH_DAY})?\s(?:of\s)?{_MONTH}(?:,?\s{_YEAR}\b{_ERA}?)?(?!\w)",  # 14 March 1879
    rf"\b{_MONTH}\s{_NTH_DAY}(?:{_DASH}{_NTH_DAY})?,?\s{_YEAR}\b{_ERA}?",  # March 14, 1879
    rf"\b{_MONTH}\s{_NTH_DAY}(?:{_DASH}{_NTH_DAY})?(?![\w%]|[.,]\d)",  # July 4
    rf"\b{_MONTH},?\s(?:of\s)?{_YEAR}\b(?!,\d)",  # June 1833
    rf"\b{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])\b",  # 1879-03-14
    rf"(?<![\d/]){_DAY}/{_DAY}/{_YEAR}\b",  # 14/3/1879
    r"(?<!\w)(?:\d{2,3}|['’]\d)0['’]?s\b",  # 1880s, '60s
    rf"\b(?i:{_ORDINALS}[\s-](?:century|centuries|millennium|millennia))\b{_ERA}?",  # 18th and 19th centuries
    r"(?<![\d.,])(?:\d{1,4}|\d{1,3},\d{3})\s?(?:BCE|BC|CE)\b",  # 44 BC
    r"\bAD\s\d{1,4}\b|(?<![\d.,])\d{1,4}\sAD\b",  # AD 79
)
_SHAPED = re.compile("|".join(f"(?:{shape})" for shape in _SHAPES))

_HINT = re.compile(r"\d|centur|millenni", re.IGNORECASE)
"""Every date contains one of these. Most sentences contain none, so they are skipped."""

_YEARS = re.compile(
    rf"(?:(?<=\b[Mm]id[-–])|(?<![\w.,$£€¥#/–-])){_YEAR}(?:{_DASH}(?:{_YEAR}|\d{{2}}))?(?![\w%]|[.,:/-]\d|-[a-z])"
)
"""A year or a range of years, with no currency, decimals, thousands, code or hyphenated unit around it."""

_EVENT = (
    r"(?:act|album|battle|book|campaign|census|championship|conference|constitution|coup|earthquake|edition|election"
    r"|essay|experiment|film|law|movie|novel|paper|play|report|revolution|season|single|song|speech|study"
    r"|survey|treaty|war)"
)
_YEAR_BEFORE = re.compile(
    r"(?:\b(?:in|since|until|till|during|circa|ca\.|c\.|early|late|mid|spring|summer|autumn|fall|winter|years?|born|b\."
    r"|d\.|died|throughout|dated|(?:early|late) as)\s|[~≈(]\s?|\bmid[-–])$",
    re.IGNORECASE,
)
_MAYBE_YEAR_BEFORE = re.compile(r"\b(?:by|around|from|between|after|before|through|to|for|of)\s$", re.IGNORECASE)
_MEASURE_BEFORE = re.compile(
    r"\b(?:altitude|area|average|budget|capacity|cost|crowd|depth|distance|elevation|excess|fleet|force|group"
    r"|height|length|mass|maximum|minimum|number|population|price|range|rate|speed|sum|temperature|total|weight|width)\sof\s$"
)
_THE = re.compile(r"(?:\b(?:the|a|an|his|her|its|their|this|that|annual)|['’]s)\s$", re.IGNORECASE)
_NUMBERED = re.compile(
    r"\b(?:pages?|pp?\.|vol\.|volume|nos?\.|number|verse|lines?|route|isbn|model)\s?$", re.IGNORECASE
)
_LIST_GLUE = re.compile(r",?\s(?:and|or|to|until|through)\s|[,;]\s|\s?[&–—]\s?")
_COUNTED = re.compile(
    r"(?:\s(?:and|to|or)\s[\d,]+)?(?:\s?[°%×]|\s(?:people|men|women|children|soldiers|troops|persons"
    r"|inhabitants|residents|members|students|copies|votes|seats|dollars|pounds|euros|francs|years|days|hours|minutes"
    r"|months|weeks|seconds|miles|kilomet(?:er|re)s?|met(?:er|re)s?|feet|foot|inch(?:es)?|acres|hectares|tons|tonnes"
    r"|kg|km|m|mm|cm|ft|mi|lb|g|mg|[kM]W|hp|M?Hz|K|degrees|percent|million|billion|times|species|pages|units|points"
    r"|volts?)\b)"
)
_PLURAL = re.compile(r"\s[a-z]{3,}(?<![su])s\b(?<!\bwas)(?<!\bhas)")
_EVENT_AFTER = re.compile(rf"\s(?:[A-Z]|(?:[a-z]+\s)?{_EVENT}\b)")


def has_date_rules(language: str) -> bool:
    """Return whether there are rules for the dates of a language, given by its code."""
    return plain_language(language) in ("en", *CALENDARS)


def find_dates(text: str, language: str = "en") -> list[SalientSpan]:
    """Return the dates in `text` from left to right without overlaps, as character offsets. None in a language without rules."""
    plain = plain_language(language)
    if plain != "en":
        return CALENDARS[plain].find(text) if plain in CALENDARS else []
    if not _HINT.search(text):
        return []
    shaped = [SalientSpan(*match.span(), DATE) for match in _SHAPED.finditer(text)]
    return resolve_overlaps([*shaped, *_find_years(text)])


def is_date(text: str, language: str = "en") -> bool:
    """Return whether all of `text` is a date or a year, and in English a month or a day of the week."""
    text = text.strip()
    if (language == "en" and text in _CALENDAR) or _YEARS.fullmatch(text):
        return True
    return any((span.start, span.end) == (0, len(text)) for span in find_dates(text, language))


def _find_years(text: str) -> Iterator[SalientSpan]:
    last_end = -1
    for match in _YEARS.finditer(text):
        before, after = text[max(0, match.start() - 24) : match.start()], text[match.end() : match.end() + 48]
        if _NUMBERED.search(before) or _COUNTED.match(after):
            continue
        continues_list = last_end >= 0 and _LIST_GLUE.fullmatch(text, last_end, match.start())
        if continues_list or _has_year_context(before, match[0], after):
            last_end = match.end()
            yield SalientSpan(*match.span(), DATE)


def _has_year_context(before: str, years: str, after: str) -> bool:
    if _YEAR_BEFORE.search(before) or (len(years) > 4 and _increase(years)):
        return True
    if _MAYBE_YEAR_BEFORE.search(before):
        return not (_MEASURE_BEFORE.search(before) or _PLURAL.match(after))
    if before.endswith((", ", "; ")) and after.startswith(")"):
        return True
    return bool(_THE.search(before) and _EVENT_AFTER.match(after))


def _increase(years: str) -> bool:
    """Return whether a range such as "1914–1918" or "1914–18" goes forward; "1914–12" is a month or a score."""
    last = re.split(r"\D+", years)[-1]
    return int(years[:4]) < int(years[: 4 - len(last)] + last)
