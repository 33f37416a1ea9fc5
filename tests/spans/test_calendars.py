"""Dates of eighteen languages: against babel, which writes dates by Unicode's CLDR, and a table decided by reading."""

from __future__ import annotations

import dataclasses
import datetime

import pytest

from realmctl.spans.calendars import CALENDARS
from realmctl.spans.dates import find_dates, has_date_rules, is_date
from realmctl.spans.settings import TagSettings

DAYS = [datetime.date(1066, 10, 14) + datetime.timedelta(days=n) for n in range(0, 345_000, 9_973)]


@pytest.mark.parametrize("language", CALENDARS)
@pytest.mark.parametrize("form", ["long", "yMMMM", "MMMMd"])
def test_every_date_that_babel_writes_is_found_whole(language, form):
    dates = pytest.importorskip("babel.dates")
    for day in DAYS:
        if form == "long":
            written = dates.format_date(day, form, locale=language)
        else:
            written = dates.format_skeleton(form, day, locale=language)
        assert [text[start:end] for text in [f"– {written} –"] for start, end, _ in find_dates(text, language)] == [
            written
        ]
        assert is_date(written, language)


TABLE = {
    "ko": "임종석은 [1989년 2월 15일]에 태어나 3년 동안, 1000년 동안 살았다. [1990년대] 초반, [기원전 44년], [19세기] 말, [6월 30일] 축전, 12월호",
    "ja": "[1868年（明治元年）10月23日]、[昭和20年8月15日]。1000年間、10年後、3日間続いた。[紀元前44年]、[19世紀]後半、[80年代]、[平成元年]に1500人",
    "zh": "[1786年2月2日]，[公元前221年]，[二十世纪八十年代]。[民國38年10月1日]，[光绪二十六年]。3年後，1000多年，1500人",
    "de": "Am [3. Oktober 1990] und im Jahr [1871] mit 1500 Einwohnern. Von [1914–1918], im [19. Jahrhundert], (* [12. Mai 1905]; † [1990]), [44 v. Chr.]",
    "fr": "Le [1er mars 1879], en [1905], entre [1914] et [1918], au [XIXe siècle], dans les [années 1990], [44 av. J.-C.] et 1500 habitants, page 1905",
    "es": "El [14 de marzo de 1879], en [1905], el [siglo XX], la [década de 1990] y 1500 habitantes, [1914-1918]",
    "ru": "[14 марта 1879 года], в [1905 году], в [XIX веке], [1990-е годы], 12 лет, 5 года, 1500 человек, [44 год до н. э.]",
    "ar": "في [14 مارس 1879] وعام [1905]، [القرن التاسع عشر]، ولد سنة [١٩٠٥] بين 1500 نسمة",
    "he": 'ב-[14 במרץ 1879], בשנת [1905], [המאה ה-19], [שנות ה-90], [44 לפנה"ס], 1500 תושבים',
    "it": "Il [14 marzo 1879], nel [1905], nel [XX secolo], negli [anni 1990], [44 a.C.] e 1500 abitanti, pagina 1905",
    "pt": "Em [14 de março de 1879], em [1905], no [século XX], na [década de 1990], [44 a.C.] e 1500 habitantes, [1914-1918]",
    "nl": "Op [14 maart 1879], in [1905], in de [20e eeuw], de [jaren 1990], [44 v.Chr.] en 1500 inwoners, [1-3-1990]",
    "pl": "Dnia [14 marca 1879 roku], w [1905], w [XX wieku], w [latach 90.], [44 p.n.e.] i 1500 mieszkańców, w [marcu 1990]",
    "sv": "Den [14 mars 1879], år [1905], på [1900-talet], [44 f.Kr.] och 1500 invånare, [1914–1918]",
    "cs": "Dne [14. března 1879], v roce [1905], ve [20. století], v [90. letech], [44 př. n. l.] a 1500 obyvatel, [1. 3. 1990]",
    "uk": "[14 березня 1879 року], у [1905 році], у [XX столітті], [1990-ті роки], 12 років, 1500 осіб, [44 до н. е.]",
    "tr": "[14 Mart 1879], [1905 yılında], [20. yüzyılda], [MÖ 44] ve 1500 kişi, [1990'da], [Mart 1990]",
    "vi": "[ngày 14 tháng 3 năm 1879], năm [1905], [thế kỷ XX], [thập niên 1990], [44 TCN], 1500 người, [tháng 3 năm 1990]",
}


def test_the_option_names_all_languages():
    [dates] = [each for each in dataclasses.fields(TagSettings) if each.name == "dates"]
    assert {*dates.metadata["realmctl"].help.rpartition(": ")[2].rstrip(".").split(", ")} == {"en", *CALENDARS}


@pytest.mark.parametrize("language", CALENDARS)
def test_the_table(language):
    marked = TABLE[language]
    text = marked.replace("[", "").replace("]", "")
    found = find_dates(text, language)
    for start, end, _ in reversed(found):
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    assert text == marked


def test_which_languages_have_rules():
    assert all(map(has_date_rules, ["en", "simple", "zh-hant", *CALENDARS]))
    assert not has_date_rules("id") and find_dates("1 Maret 1990", "id") == []
    assert not is_date("March", "de")
