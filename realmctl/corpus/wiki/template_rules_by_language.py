"""Templates of Wikipedias in other languages than English: what each shows as wikitext, and which show nothing.

Each rule gives what the documentation of the template on that Wikipedia shows. A name holds for one language alone: {{s|XX}} is a century
in French, and in Russian it keeps a line together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from realmctl.corpus.wiki.arguments import Arguments
from realmctl.corpus.wiki.template_rules import TemplateRule, around, first, joined, nothing, second, words

FRENCH_MONTHS = [
    "janvier",
    "février",
    "mars",
    "avril",
    "mai",
    "juin",
    "juillet",
    "août",
    "septembre",
    "octobre",
    "novembre",
    "décembre",
]
SPANISH_MONTHS = [
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
]
RUSSIAN_MONTHS = [
    "января",
    "февраля",
    "марта",
    "апреля",
    "мая",
    "июня",
    "июля",
    "августа",
    "сентября",
    "октября",
    "ноября",
    "декабря",
]


def _rules(rule: TemplateRule, names: str) -> dict[str, TemplateRule]:
    return dict.fromkeys(words(names), rule)


def _quantity(a: Arguments) -> str:
    """`9381|km|2` gives "9381 km2"."""
    return f"{a[0]} {a[1]}{a[2]}".strip()


def _link(place: int, *labels: str) -> TemplateRule:
    """Return the rule of a link to a page that another language has. The label is a named argument, or the one at `place`, or the title."""

    def rule(a: Arguments) -> str:
        title = a[0] or a.get("fr", "عر")
        label = a.get(*labels) or (a[place] if place else "") or title
        return f"[[{title or label}|{label}]]" if label else ""

    return rule


def _date(months: list[str], between: str = " ") -> TemplateRule:
    """Return the rule of a date as day, month and year, by position or with blanks between them; a month may be a number."""

    def rule(a: Arguments) -> str:
        parts = " ".join(a.args[:3]).split()
        if 1 < len(parts) <= 3 and parts[-2].isdecimal() and 0 < int(parts[-2]) <= 12:
            parts[-2] = months[int(parts[-2]) - 1]
        if months is FRENCH_MONTHS and len(parts) > 1 and parts[0] == "1":
            parts[0] = "1er"
        return between.join(parts)

    return rule


def _century(after: str = "") -> TemplateRule:
    """Return the rule of `XX`, which shows "XXe siècle"."""
    return lambda a: f"{a[0]}{'er' if a[0] == 'I' else 'e'} siècle{after}" if a[0] else ""


def _centuries(word: str) -> TemplateRule:
    """Return the rule of `XIX|e|et|XX|e` or `XIX|e|XX|e`, which shows "XIXe et XXe siècles"."""

    def rule(a: Arguments) -> str:
        numbers = [part for part in a.args if re.fullmatch("[IVXL]+", part)]
        shown = [number + ("er" if number == "I" else "e") for number in numbers[:2]]
        return f"{f' {word} '.join(shown)} siècle{'s' * (len(shown) > 1)}" if shown else ""

    return rule


def _hours(a: Arguments) -> str:
    return " ".join(part for part in (a[0], "h", a[1]) if part) if a[0] else ""


def _aside(a: Arguments) -> str:
    """A clause between dashes; `stop` leaves out the second."""
    return f"— {a[0]}" + ("" if "stop" in a.args[1:] else " —") if a[0] else ""


def _spanish_century(a: Arguments) -> str:
    """`V|a` gives "siglo V a. C."."""
    return f"siglo {a[0]}" + {"a": " a. C.", "d": " d. C."}.get(a[1].lower(), "") if a[0] else ""


def _old_style(a: Arguments) -> str:
    """`12|2|1809|31|1` gives "31 января (12 февраля) 1809"."""
    months = {str(number): name for number, name in enumerate(RUSSIAN_MONTHS, 1)}
    month, old = months.get(a[1].lstrip("0"), a[1]), months.get(a[4].lstrip("0"), a[4])
    return f"{a[3]} {old} ({a[0]} {month}) {a[2]}".replace("  ", " ") if a[3] else f"{a[0]} {month} {a[2]}".strip()


def _lives(a: Arguments) -> str:
    """`1900年|1月1日|1980年|2月2日` gives "（1900年1月1日－1980年2月2日）"."""
    return f"（{a[0]}{a[1]}－{a[2]}{a[3]}）"


RULES_BY_LANGUAGE: Mapping[str, Mapping[str, TemplateRule]] = {
    "fr": {
        **_rules(_quantity, "unité, unite, nombre, nb, unité/2"),
        **_rules(_hours, "heure"),
        **_rules(lambda a: f"{a[0]} {a[1] or '°C'}", "tmp"),
        **_rules(_date(FRENCH_MONTHS), "date, date-, date de naissance, date de décès, date naissance, date décès"),
        **_rules(_century(), "s, s-, siècle"),
        **_rules(_century(" av. J.-C."), "-s, -s-"),
        **_rules(_centuries("et"), "s2, s2-"),
        **_rules(_centuries("au"), "sp, sp-"),
        **_rules(around("« ", " »"), "citation, citation étrangère, cita, «"),
        **_rules(_aside, "incise"),
        **_rules(lambda a: a.get("texte") or a[1] or a[0], "langue, lang, langue avec nom, en langue"),
        **_rules(_link(0, "texte", "trad"), "lien"),
        **_rules(around("M. "), "m."),
        **_rules(around("Mme "), "mme"),
        **_rules(
            first,
            "référence nécessaire, référence souhaitée, refnec, refsou, référence insuffisante, refins, préciser, pas clair, souverain, souverain2, "
            "abréviation, abréviation discrète, citation bloc, petites capitales, pc, exp, ind, nombre romain",
        ),
        **_rules(
            nothing,
            "note, msapi, api, prononciation, ouvrage, article, chapitre, lien web, lien brisé, drapeau, drapeau2, bnf, quoi, quand, qui, "
            "où, combien, interprétation personnelle, non neutre, légende",
        ),
        ",": nothing,
    },
    "de": {
        **_rules(around("", " m"), "höhe"),
        **_rules(around("„", "“"), "zitat, zitat-de"),
        **_rules(lambda a: f"{a[0]} {a[1]},{a[2]}".strip(" ,"), "bibel"),
        **_rules(lambda a: f"{a[0]}/{a[1]}" if a[1] else a[0], "bruch"),
        **_rules(lambda a: a[1] or a[0], "sortkey"),
        **_rules(nothing, "anker, absatz, audio, coordinate, formnum, fldez, fn, fnbox, fnz, ewz, ewd, dnb, 0, siehe auch, hauptartikel"),
    },
    "es": {
        **_rules(_spanish_century, "siglo"),
        **_rules(_quantity, "unidad"),
        **_rules(_date(SPANISH_MONTHS, " de "), "fecha"),
        **_rules(around("«", "»"), "cita"),
        **_rules(lambda a: " ", "esd"),
        **_rules(first, "versalita"),
        **_rules(nothing, "bandera, bandera2, actualizar, cita requerida, enlace roto, ¿quién?, ¿cuándo?, quién, cuándo, aclarar, audio"),
    },
    "ru": {
        **_rules(
            _link(1),
            "нп, нп1, нп2, нп3, нп4, нп5, iw, не переведено, не переведено 2, не переведено 3, не переведено 4, не переведено 5",
        ),
        **_rules(first, "s, нет аи 2, флагификация, comment, юникод, подсказка"),
        **_rules(joined(" "), "число, num"),
        **_rules(_date(RUSSIAN_MONTHS), "дата"),
        **_rules(_old_style, "oldstyledate"),
        **_rules(nothing, "нет аи, нет источника, аи, флаг, audio, аудио, что, кто, когда, где, уточнить, стиль, переход, якорь, ш"),
    },
    "ar": {
        **_rules(_link(0, "نص", "عر"), "وإو, وصلة إنترويكي"),
        **_rules(first, "اقتباس مضمن, نص أصلي"),
        **_rules(nothing, "بحاجة لمصدر, حقيقة, مصدر, بحاجة لتوضيح, علم, رمز علم, روابط شقيقة, ملاحظة, هامش"),
    },
    "he": {
        **_rules(lambda a: a.get("תוכן") or a[0], "ציטוט, ציטוטון"),
        **_rules(
            nothing, "הערה, הערת שוליים, כ, ש, מקור, דרוש מקור, דרושה הבהרה, הבהרה, קישור כללי, אנ, גר, צר, רו, ספ, אודיו, ויקישיתוף, צ-מאמר, צ-ספר, תב"
        ),
    },
    "zh": {
        **_rules(_link(2), "le, link-en2"),
        **_rules(lambda a: f"[[{a[2]}|{a[3] or a[2]}]]" if a[2] else "", "tsl, translink"),
        **_rules(_lives, "bd"),
        **_rules(first, "ruby, 僻字, 不存在的字, 注音"),
        **_rules(nothing, "来源请求, 來源請求, 注, 註, noteta, 何時, 谁, 誰, who, when"),
    },
    "ja": {
        **_rules(lambda a: f"[[{a[0]}|{a.get('label') or a[0]}]]" if a[0] else "", "仮リンク"),
        **_rules(lambda a: f"{a[0]}（{a[1]}）" if a[1] else a[0], "読み仮名, 読み仮名 ruby不使用, ruby"),
        **_rules(first, "補助漢字フォント, cjkv, jis2004フォント, color"),
        **_rules(nothing, "要出典, 要検証, 要説明, いつ, 誰, 誰2, どこ, enlink, 音声, 脚注ヘルプ, 要ページ番号, 信頼性要検証"),
    },
    "ko": {
        **_rules(lambda a: f"{a[0]}({a[1]})" if a[1] else a[0], "ruby-ko, 루비"),
        **_rules(second, "한자"),
        **_rules(nothing, "소리, 출처, 출처 필요, 언제, 누가, 어디, 모호, 확인 필요, 각주, 주, 국기그림"),
    },
}  # fmt: skip
"""{language: {name of a template in lower case: what it shows}}."""


def _itself(written: re.Match[str]) -> TemplateRule:
    """The rule of a template that shows its name and then what it is given: {{XXe siècle}}, {{84e|congrès}}."""
    return lambda a: f"{written[0]} {a[0]}".strip()


RULES_BY_PATTERN: Mapping[str, tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], TemplateRule]], ...]] = {
    "fr": (
        (re.compile(r"(?:\d+|[IVXLCM]+)(?:er|re|e|ers|res|es|nd|nde)(?: (?:siècle|millénaire)s?(?: av(?:ant|\.) J\.?-C\.?)?)?"), _itself),
        (re.compile(r"1er (?:\w+)"), _itself),
    ),
    "de": ((re.compile("Metadaten .*"), lambda _: nothing),),
    "ru": ((re.compile("[Rr]ef-.*|[Ff]lag.*|Флаг .*"), lambda _: nothing),),
    "ar": ((re.compile("استشهاد.*|مرجع .*"), lambda _: nothing),),
    "zh": ((re.compile("[Ll]ink-.*"), lambda _: _link(2)),),
    "ja": ((re.compile("[Pp]opulation .*|[Ii]pa.*"), lambda _: nothing),),
}  # fmt: skip
"""{language: (a pattern of the whole name as written, the rule of a match)}."""
