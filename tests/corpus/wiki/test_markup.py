"""The short cuts of the scanner find what a plain walk with the whole pattern finds."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from realmctl.corpus.wiki import markup

BRACES = st.text("{}|\nx", max_size=40)
SHORT_CUT = r"<ref(?=[\s>])[^<>/]*+>[^<]*+(</ref\s*+>)"
WHOLE = re.compile(markup.HIDDEN.pattern.replace(SHORT_CUT, r"<(?!)()"), re.IGNORECASE)
PIECES = """<ref>|<ref name=a>|<REF name='x/y'>|<ref name=a />|<ref/>|</ref>|</Ref >|<refs>|<references>|</references>
<math>|x|</math>|<nowiki>|</nowiki>|<!--|-->|<br>|<|>|word| |é"""
ELEMENTS = st.lists(st.sampled_from([*re.split(r"[|\n]", PIECES), "\n", "\n\n"]), max_size=20).map("".join)


@given(BRACES)
@settings(max_examples=500, deadline=None)
@example("a|}")
@example("|}{|}}")
def test_braces_are_those_of_the_pattern(text):
    found = [match.span() for match in markup._braces(text)]
    assert found == [match.span() for match in markup.BRACES.finditer(text)]


@given(ELEMENTS)
@settings(max_examples=500, deadline=None)
@example("a<ref>b</ref>c<ref name=x>d</ref >.")
def test_short_references_are_hidden_as_all_others(text):
    found = markup.drop_hidden(text)
    short, markup.HIDDEN = markup.HIDDEN, WHOLE
    try:
        assert found == markup.drop_hidden(text)
    finally:
        markup.HIDDEN = short


def test_the_short_cut_is_in_use():
    assert SHORT_CUT in markup.HIDDEN.pattern
    assert markup.HIDDEN.search("<ref name=a>b</ref>")[1] == "</ref>"
