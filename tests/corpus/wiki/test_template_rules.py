"""The rules of templates.toml: against what each showed when they were Python (shown.json), and the notation against what it says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.corpus.wiki.arguments import Arguments
from realmctl.corpus.wiki.template_rules import GENERAL, rules, shown_as
from realmctl.corpus.wiki.templates import render
from realmctl.data import names, table

SHOWN = json.loads((Path(__file__).parent / "shown.json").read_text(encoding="utf-8"))
"""{language: {template with its arguments: what it shows}}, written by the rules in Python that templates.toml replaced."""
LANGUAGES = sorted(table("templates"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_template_shows_what_it_showed(language):
    code = "" if language == GENERAL else language
    assert {content: render(content, "", 0, 0, code) for content in SHOWN[language]} == SHOWN[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_rule_has_an_example(language):
    """Whoever adds a rule writes into shown.json what its template shows."""
    written = [content.partition("|")[0] for content in SHOWN[language]]
    known = rules(language)
    shown = {known.find(name) for name in written}
    assert [name for name, rule in known.by_name.items() if rule not in shown] == []
    for start, end, _ in known.families:
        assert any(name.lower().startswith(start) and name.lower().endswith(end) for name in written), (start, end)
    for pattern, _ in known.patterns:
        assert any(map(pattern.fullmatch, written)), pattern


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_name_stands_in_one_place(language):
    """Of two rules for a name one would never be used."""
    listed = []
    for kind, lines in table("templates")[language].items():
        if kind not in ("patterns", "words", "dates"):
            listed += [
                name.lower() for left, right in lines.items() for name in names(left if kind == "shows" else right)
            ]
    assert sorted(listed) == sorted(set(listed))


def test_all_names_of_a_line_are_one_rule():
    for name in ("convert", "cvt", "conv"):
        assert render(f"{name}|5|km", "", 0, 0) == "5 km"
    assert rules(GENERAL).find("Page needed") is rules(GENERAL).find("cn") is rules(GENERAL).find("Cite web")


WORD = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=5)
MAYBE = st.one_of(st.just(""), WORD)


@given(MAYBE, MAYBE, MAYBE)
def test_the_notation(one, two, text):
    a = Arguments([one, two], {"text": text})
    assert shown_as("{1}")(a) == one
    assert shown_as("{2 or text}")(a) == (two or text)
    assert shown_as("b. {1}")(a) == (f"b. {one}" if one else "")
    assert shown_as(["b. {1}", "b."])(a) == (f"b. {one}" if one else "b.")
    assert shown_as("c. [{1}][ – {2}]")(a) == f"c. {one}{f' – {two}' if two else ''}".strip()
    assert shown_as("[[{1}|{text or 1}]]")(a) == (f"[[{one}|{text or one}]]" if one else "")
    assert shown_as("[{1}[ ({2})];]x")(a) == ((one + (f" ({two})" if two else "") + ";" if one else "") + "x")


@pytest.mark.parametrize(
    ("given", "shown"), [("k", "5 thousand"), ("K", "5 thousand"), ("lc", "5 lakh crore"), ("q", "5")]
)
def test_words_are_looked_up_as_written_or_in_small_letters(given, shown):
    assert shown_as("{1}[ {2 in amounts}]")(Arguments(["5", given], {})) == shown


@pytest.mark.parametrize("broken", ["[{1}", "{1}]", "[[{1}|x", "{1", "x}", "{1 in nowhere}"])
def test_a_form_that_does_not_close_is_refused(broken):
    with pytest.raises(ValueError, match=r"templates\.toml"):
        shown_as(broken)
