"""Which texts hold an answer: as `has_answer` says, only faster, and never for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.questions.answer_search import AnswerSearch
from realmctl.questions.answers import has_answer
from realmctl.questions.questions import Question

WORDS = st.lists(
    st.sampled_from(["Art", "party", "É", "Beyoncé", "U.S.", "$1,000", "İ", "K", "ﬁ", "st", "A-b", "中国", ""]),
    max_size=5,
).map(" ".join)


@given(WORDS | st.text(), st.lists(WORDS | st.text(), max_size=3), st.sampled_from(["tokens", "substring"]))
def test_it_says_what_has_answer_says(text, answers, how):
    assert AnswerSearch(Question("1", "?", tuple(answers)), how)(text) == has_answer(text, answers, how)


@given(WORDS)
def test_every_text_holds_its_own_words(text):
    assert AnswerSearch(Question("1", "?", (text,)), "tokens")(f"- {text} -") == has_answer(text, [text], "tokens")


def test_regular_expressions():
    search = AnswerSearch(Question("1", "?", (r"\d{4}", "(", "Beyonc."), is_regex=True), "substring")
    assert search("in 1912") and search("Beyoncé") and not search("in 19")
    assert search.spans("in 1912 and 2012, Beyoncé") == [(3, 7), (12, 16), (18, 25)]


def test_a_hostile_pattern_does_not_cost_its_budget_for_every_block():
    search = AnswerSearch(Question("1", "?", ("(c|cc)+$",), is_regex=True), "substring")
    text = "c" * 3000 + "!"
    assert search.spans(text) == []
    assert not any(search(text) for _ in range(1000))  # otherwise it would take a thousand seconds, which no test has


@pytest.mark.parametrize("how", ["tokens", "substring"])
def test_no_answer_is_in_nothing(how):
    assert not AnswerSearch(Question("1", "?", ()), how)("text")
