"""Which questions a corpus answers, against asking every text about every question."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from realmctl.questions.answer_search import answered_by
from realmctl.questions.answers import has_answer
from realmctl.questions.questions import Question

WORD = st.sampled_from(
    ["ada", "Ada", "café", "cafe\u0301", "a.b", "½", "x½", "1843", "the", "é", "İ", "ada-lovelace", "K", ""]
)
TEXT = st.lists(WORD, max_size=6).map(" ".join)
PLAIN = st.builds(
    Question, st.just(""), st.just("?"), st.lists(TEXT, min_size=1, max_size=3).map(tuple), st.just(False)
)
REGEX = st.builds(
    Question, st.just(""), st.just("?"), st.sampled_from([("a.a",), ("18[0-9]+",), ("(",)]), st.just(True)
)


@given(st.lists(PLAIN | REGEX, max_size=6), st.lists(TEXT, max_size=6))
def test_against_every_text_for_every_question(questions, texts):
    wanted = {
        number
        for number, question in enumerate(questions)
        if any(has_answer(text, question.answers, "regex" if question.is_regex else "tokens") for text in texts)
    }
    assert answered_by(questions, texts) == wanted


def test_no_more_is_read_than_answers_all():
    read = []
    texts = (read.append(text) or text for text in ["Ada", "Ben", "Cora"])
    assert answered_by([Question("", "?", ("Ben",)), Question("", "?", ("ada",))], texts) == {0, 1}
    assert read == ["Ada", "Ben"]
