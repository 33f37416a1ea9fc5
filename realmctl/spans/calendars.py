"""Dates by rules in ko, zh, ja, de, fr, es, ru, ar and he. The rules are this project's own; dates.py has those of English.

A date is found by its form: a day, a month, or a year beside a word of the calendar (1990年, 14 mars 1879, XX век), an era, a century or a
decade. Where years stand alone, as in European languages, a number from 1000 to 2099 is one only after a word that says so ("en 1905",
"seit 1905"), in brackets, or in a range that goes forward.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from realmctl.spans.salient import DATE, SalientSpan, resolve_overlaps

_YEAR = r"(?:[1１١۱]\d{3}|[2２٢۲][0０٠۰]\d{2})"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_DAY_IN_ANY_DIGITS = r"\d{1,2}"
_DASH = r"\s?[-–—~～〜]\s?"
_ISO = rf"(?<!\d){_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)"
_NUMERIC = rf"(?<![\d./]){_DAY}[./](?:0?[1-9]|1[0-2])[./]{_YEAR}(?!\d)"
_ROMAN = r"(?<!\w)[IVX]{1,5}"


@dataclass(frozen=True)
class Calendar:
    """The dates of a language.

    Attributes:
        shapes: patterns of dates that are told by their form.
        before_year: a pattern of what stands before a year that stands alone. Empty: none does.
    """

    shapes: tuple[str, ...]
    before_year: str = ""

    def find(self, text: str) -> list[SalientSpan]:
        """Return the dates in `text` from left to right without overlaps, as character offsets."""
        if not _HINT.search(text):
            return []
        shaped = [SalientSpan(*match.span(), DATE) for match in _compiled(self.shapes).finditer(text)]
        return resolve_overlaps([*shaped, *self._years(text)])

    def _years(self, text: str) -> Iterator[SalientSpan]:
        if not self.before_year:
            return
        context = _before(self.before_year)
        for match in _LONE_YEARS.finditer(text):
            before = text[max(0, match.start() - 32) : match.start()]
            if context.search(before) or _goes_forward(match[0]):
                yield SalientSpan(*match.span(), DATE)


_HINT = re.compile(r"\d|[一二三四五六七八九十元]|век|siècle|siglo|القرن|قرن|המאה|[IVX]")
"""Every date contains one of these."""
_COUNTED = (
    "habitant|Einwohner|Personen|Menschen|Soldaten|Meter|Kilometer|Euro|personas|personnes|soldats|soldados|mètres|metros|euros|человек|жител|рубл|תושבים"
    "|איש|نسمة|شخص"
)
_LONE_YEARS = re.compile(
    rf"(?<![\w.,$£€¥#/–-]){_YEAR}(?:{_DASH}(?:{_YEAR}|\d{{2}}))?(?![\w%°]|[.,:/-]\d|\s?(?:km|m|kg|€|\$)\b|\s(?:{_COUNTED}))"
)


@lru_cache(maxsize=16)
def _compiled(shapes: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{shape})" for shape in (*shapes, _ISO)))


@lru_cache(maxsize=16)
def _before(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?<!\w)(?:{words}|{_YEAR}\s(?:und|bis|et|à|y|a|и|по))|[(（*†])\s?$", re.IGNORECASE)


def _goes_forward(years: str) -> bool:
    """Return whether a range such as "1914–1918" or "1914–18" goes forward."""
    first, *others = re.findall(r"\d+", years)
    return bool(others) and int(first) < int(first[: 4 - len(others[0])] + others[0])


def _european(months: str, of: str = r"\s", day: str = rf"{_DAY}", year: str = _YEAR) -> tuple[str, ...]:
    """Return the shapes of "14 mars 1879", "14 mars" and "mars 1879", and of ranges of days. `of` stands between the parts."""
    days = rf"{day}(?:{_DASH}{day})?"
    return (
        rf"(?<!\w){days}{of}(?:{months})(?!\w)(?:{of}{year}(?!\w))?",
        rf"(?<!\w)(?:{months}){of}{year}(?!\w)",
        _NUMERIC,
    )


_GERMAN_MONTHS = (
    r"Januar|Jänner|Februar|Feber|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|(?:Jan|Feb|Mrz|Apr|Jun|Jul|Aug|Sept?|Okt|Nov"
    r"|Dez)\."
)
_FRENCH_MONTHS = "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre"
_SPANISH_MONTHS = "enero|febrero|marzo|abril|mayo|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre"
_RUSSIAN_MONTHS = "января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря"
_RUSSIAN_MONTHS_ALONE = "(?:январ|феврал|апрел|июн|июл|сентябр|октябр|ноябр|декабр)[ьея]|март[еа]?|ма[йея]|август[еа]?"
_ARABIC_MONTHS = (
    "يناير|فبراير|مارس|أبريل|إبريل|ابريل|مايو|يونيو|يونيه|يوليو|يوليه|أغسطس|اغسطس|سبتمبر|أكتوبر|اكتوبر|نوفمبر|ديسمبر"
    "|كانون الثاني|شباط|آذار|نيسان|أيار|حزيران|تموز|آب|أيلول|تشرين الأول|تشرين الثاني|كانون الأول"
    "|محرم|صفر|ربيع الأول|ربيع الآخر|ربيع الثاني|جمادى الأولى|جمادى الآخرة|رجب|شعبان|رمضان|شوال|ذو القعدة|ذي القعدة|ذو الحجة|ذي الحجة"
)
_HEBREW_MONTHS = "ינואר|פברואר|מרץ|מרס|אפריל|מאי|יוני|יולי|אוגוסט|ספטמבר|אוקטובר|נובמבר|דצמבר"
_NUMERALS = "一二三四五六七八九十"
_CHINESE_ERAS = (
    "民国|民國|光绪|光緒|宣统|宣統|同治|咸丰|咸豐|道光|嘉庆|嘉慶|乾隆|雍正|康熙|顺治|順治|崇祯|崇禎|天启|天啟|万历|萬曆|隆庆|隆慶|嘉靖|正德|弘治"
    "|成化|天顺|天順|景泰|正统|正統|宣德|永乐|永樂|建文|洪武|至元|开元|開元|天宝|天寶|贞观|貞觀|建安|昭和|明治|大正|平成|令和"
)
_JAPANESE_ERAS = (
    "令和|平成|昭和|大正|明治|慶応|元治|文久|万延|安政|嘉永|弘化|天保|文政|文化|享和|寛政|天明|安永|明和|宝暦|寛延|延享|寛保|元文|享保|正徳|宝永|元禄|貞享"
    "|天和|延宝|寛文|万治|明暦|承応|慶安|正保|寛永|元和|慶長|文禄|天正|元亀|永禄|弘治|天文|大永|永正|文亀|明応|延徳|長享|文明|応仁"
)
_DATE_IN_MONTH = rf"\s?\d{{1,2}}月(?:\s?{_DAY_IN_ANY_DIGITS}[日号號])?"

CALENDARS = {
    "ko": Calendar(
        (
            rf"(?:(?:기원전|기원후|서기|단기)\s?\d{{1,4}}|(?<!\d){_YEAR}|(?<!\d)\d{{3,4}}(?=년\s?\d{{1,2}}월))년"
            rf"(?!\s?(?:간|동안|만에|째|넘게|이상|가까이))(?:대|도(?!시))?(?:\s?\d{{1,2}}월(?:\s?{_DAY_IN_ANY_DIGITS}일)?)?",
            rf"(?<!\d)\d{{1,2}}월\s?{_DAY_IN_ANY_DIGITS}일(?!간)",
            r"(?:기원전\s?)?(?<!\d)\d{1,2}세기",
            r"(?<!\d)\d{2}년대",
            rf"(?<![\d.]){_YEAR}\.\s?\d{{1,2}}\.\s?{_DAY_IN_ANY_DIGITS}\.?(?!\d)",
        )
    ),
    "ja": Calendar(
        (
            rf"(?:(?:紀元前|西暦)\s?\d{{1,4}}|(?:{_JAPANESE_ERAS})(?:\d{{1,2}}|元|[{_NUMERALS}]{{1,3}})|(?<!\d){_YEAR}|(?<!\d)\d{{3}}(?=年(?:[（(]|\d{{1,2}}月)))"
            rf"年(?![間後前目]|ぶり|以上|あまり|余)(?:代|度(?!々))?"
            rf"(?:[（(](?:{_JAPANESE_ERAS})(?:\d{{1,2}}|元)年[）)])?(?:{_DATE_IN_MONTH})?",
            rf"(?<!\d)\d{{1,2}}月{_DAY_IN_ANY_DIGITS}日(?!間)",
            rf"(?:紀元前)?(?<!\d)(?:\d{{1,2}}|[{_NUMERALS}]{{1,3}})世紀",
            r"(?<!\d)\d{2}年代",
        )
    ),
    "zh": Calendar(
        (
            rf"(?:(?:公元前|公元|西元前|西元|前)\s?\d{{1,4}}|(?:{_CHINESE_ERAS})(?:\d{{1,3}}|元|[{_NUMERALS}]{{1,4}})|(?<!\d){_YEAR}|[一二][〇零○一二三四五六七八九]{{3}}"
            rf"|(?<!\d)\d{{3}}(?=年\d{{1,2}}月))年(?![间間多余餘])(?:代)?(?:{_DATE_IN_MONTH})?",
            rf"(?<!\d)\d{{1,2}}月{_DAY_IN_ANY_DIGITS}[日号號](?![间間])",
            rf"(?:公元前|西元前|前)?(?<!\d)(?:\d{{1,2}}|[{_NUMERALS}]{{1,3}})世[纪紀](?:\d{{2}}年代|[{_NUMERALS}]十年代)?",
            r"(?<!\d)\d{2}年代",
        )
    ),
    "de": Calendar(
        (
            *_european(_GERMAN_MONTHS, day=rf"{_DAY}\."),
            rf"(?<!\w){_DAY}\.(?:\s(?:und|bis|oder)\s{_DAY}\.|{_DASH}{_DAY}\.)?\sJahrhunderts?(?:\s[vn]\.\sChr\.)?",
            r"(?<![\w.])\d{1,4}\s[vn]\.\s?Chr\.",
            r"(?<!\w)(?:1\d|20)?\d0er(?:[- ]Jahren?)?(?!\w)",
        ),
        r"in|im|im Jahre?|Jahre?|seit|ab|bis|um|von|nach|vor|zwischen|anfang|ende|mitte|frühjahr|frühling|sommer|herbst|winter|gegen|etwa|ca\.|seit etwa"
        r"|geboren|geb\.|gest\.|schon|bereits|erst|noch",
    ),
    "fr": Calendar(
        (
            *_european(_FRENCH_MONTHS, day=rf"(?:1er|{_DAY})"),
            rf"{_ROMAN}(?:er|e|ème)(?:\s(?:et|au)\s[IVX]{{1,5}}(?:er|e|ème))?\s(?:siècle|millénaire)s?(?:\s(?:av|apr)\.\sJ\.-C\.)?",
            r"(?<![\w.,])\d{1,4}\s(?:av|apr)\.\s?J\.-C\.",
            r"(?<!\w)années\s(?:1\d|20)?\d0(?!\d)",
        ),
        r"en|dès|depuis|vers|jusqu['’]en|avant|après|entre|fin|début|mi|l['’]an|l['’]année|année|printemps|été|automne|hiver|né en|mort en|d['’]ici|courant",
    ),
    "es": Calendar(
        (
            *_european(_SPANISH_MONTHS, of=r"\s(?:del?\s)?(?:año\s)?", day=rf"{_DAY}º?"),
            r"(?<!\w)siglos?\s[IVX]{1,5}(?:\s[ya]\s[IVX]{1,5})?(?:\s[ad]\.\s?C\.)?(?!\w)",
            r"(?<![\w.,])\d{1,4}\s[ad]\.\s?C\.",
            r"(?<!\w)(?:años|década de(?: los)?)\s(?:1\d|20)?\d0(?!\d)",
        ),
        r"en|desde|hacia|hasta|entre|antes de|después de|año|años|del año|fines de|finales de|principios de|mediados de|c\.|circa|verano de|otoño de|invierno de|primavera de|en el",
    ),
    "ru": Calendar(
        (
            rf"(?<!\w){_DAY}(?:{_DASH}{_DAY})?\s(?:{_RUSSIAN_MONTHS})(?!\w)(?:\s{_YEAR}(?:\s(?:года|г\.)|(?!\w)))?",
            rf"(?<!\w)(?:{_RUSSIAN_MONTHS_ALONE}|{_RUSSIAN_MONTHS})\s{_YEAR}(?:\s(?:года|году|г\.)|(?!\w))",
            rf"(?<![\w–-]){_YEAR}(?:{_DASH}\d{{2,4}})?(?:-[а-я]{{1,2}})?\s(?:год(?:а|у|ом|е|ы|ов|ах|ам)?(?!\w)|гг?\.)",
            r"(?<![\w–-])\d{1,4}\s(?:год(?:а|у|ом|е|ы)?|гг?\.)\sдо\sн\.\s?э\.",
            r"(?<![\w.,])\d{1,4}\sдо\sн\.\s?э\.",
            rf"{_ROMAN}(?:{_DASH}[IVX]{{1,5}})?\s(?:век(?:а|е|у|ом|ов|ах)?|вв?\.)(?:\sдо\sн\.\s?э\.)?(?!\w)",
            _NUMERIC,
        ),
        r"в|с|по|до|от|около|после|начале|конце|середине|весной|летом|осенью|зимой|род\.|ум\.|ок\.",
    ),
    "ar": Calendar(
        (
            rf"(?<!\w){_DAY_IN_ANY_DIGITS}(?:{_DASH}{_DAY_IN_ANY_DIGITS})?\s(?:من\s)?(?:{_ARABIC_MONTHS})(?:\s?/\s?(?:{_ARABIC_MONTHS}))?(?!\w)(?:\s?[،,]?\s?(?:من\s)?(?:عام\s|سنة\s)?\d{{3,4}}(?:\s?(?:م|هـ)(?!\w)|(?!\w)))?",
            rf"(?<!\w)(?:{_ARABIC_MONTHS})(?:\s?/\s?(?:{_ARABIC_MONTHS}))?\s(?:من\s)?(?:عام\s|سنة\s)?\d{{3,4}}(?:\s?(?:م|هـ)(?!\w)|(?!\w))",
            r"(?<!\w)\d{1,4}\s?(?:ق\.?\s?م|هـ|م)(?!\w)\.?",
            r"القرن\s(?:ال[\w]+(?:\sعشر)?(?:\sوالعشرين)?)(?:\s(?:الميلادي|الهجري|قبل\sالميلاد))?",
            _NUMERIC,
        ),
        r"[وبف]?(?:عام|سنة|عامي|العام|منذ|حتى|أعوام|لعام)|في",
    ),
    "he": Calendar(
        (
            rf"(?<!\d){_DAY}\sב?(?:{_HEBREW_MONTHS})(?!\w)(?:,?\s(?:שנת\s)?{_YEAR}(?!\d))?",
            rf"(?<!\w)[במהלו]?(?:{_HEBREW_MONTHS})\s(?:שנת\s)?{_YEAR}(?!\d)",
            r"המאה\sה-?(?:\d{1,2}|[\w\"״]+)(?:\sלפנה[\"״]ס|\sלספירה)?",
            r"(?<!\w)ב?שנות\sה-?\d{2,4}",
            r"(?<!\w)\d{1,4}\sלפנה[\"״]ס",
            _NUMERIC,
        ),
        r"[ובמל]?שנת|[ובמל]?שנים|ב-|מ-|מאז|עד|משנת|בשנים|לאחר|לפני|סוף|תחילת|קיץ|חורף|אביב|סתיו|ל-",
    ),
}
"""The calendars by the code of their language. Digits of any script count, such as those of Arabic."""
