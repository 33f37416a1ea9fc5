"""What is shown of a question: every character of a block, marks where they belong, questions of every outcome."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from realmctl.extras.report.evidence import pieces, sample_evenly

TEXT = st.text(max_size=40)


@given(TEXT, st.data())
def test_pieces_are_the_text_and_marks_are_the_spans(text, data):
    span = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(sorted).map(tuple)
    answers, predicted = data.draw(st.lists(span, max_size=4)), data.draw(st.lists(span, max_size=1))
    found = pieces(text, answers, predicted)
    assert "".join(piece.text for piece in found) == text
    for name, spans in (("answer", answers), ("predicted", predicted)):
        marked = [getattr(piece, name) for piece in found for _ in piece.text]
        assert marked == [any(start <= at < end for start, end in spans) for at in range(len(text))]


@given(st.lists(st.sampled_from(["corpus", "far", "near", "read", "right"]), max_size=80), st.integers(0, 90))
def test_the_shown_are_as_even_as_can_be(failures, most):
    chosen = sample_evenly(failures, most)
    assert chosen == sorted(set(chosen)) and len(chosen) == min(most, len(failures))
    all_of, shown = Counter(failures), Counter(failures[number] for number in chosen)
    fullest = max(shown.values(), default=0)
    assert all(shown[name] >= min(all_of[name], fullest - 1) for name in all_of)


def test_the_shown_are_spread_over_the_set():
    assert sample_evenly(["far"] * 100, 4) == [0, 25, 50, 75]
