"""The rules that make raw finds maskable spans, against brute force."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from realmctl.spans.salient import SalientSpan, covered_tokens, resolve_overlaps, split_by_sentence

some_spans = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 8), st.sampled_from("AB")).map(
        lambda made: SalientSpan(made[0], made[0] + made[1], made[2])
    ),
    max_size=12,
)


def overlap(left: SalientSpan, right: SalientSpan) -> bool:
    return left.start < right.end and right.start < left.end


def greedy(spans: list[SalientSpan]) -> list[SalientSpan]:
    """Longest first, then leftmost, by looking at every pair."""
    kept: list[SalientSpan] = []
    for span in sorted(spans, key=lambda s: (-(s.end - s.start), s.start, s.label)):
        if not any(overlap(span, other) for other in kept):
            kept.append(span)
    return sorted(kept)


@given(some_spans)
def test_overlaps_resolve_as_by_brute_force(spans):
    assert resolve_overlaps(spans) == greedy(spans)


@given(some_spans)
def test_nothing_dropped_without_a_longer_or_equal_kept_rival(spans):
    kept = resolve_overlaps(spans)
    assert not any(overlap(a, b) for a, b in combinations(kept, 2))
    for span in set(spans) - set(kept):
        assert any(overlap(span, other) and other.end - other.start >= span.end - span.start for other in kept)


def test_longest_wins_then_leftmost_and_duplicates_collapse():
    long, left, right = SalientSpan(4, 20, "LONG"), SalientSpan(0, 5, "LEFT"), SalientSpan(3, 8, "RIGHT")
    assert resolve_overlaps([left, long, long]) == [long]
    assert resolve_overlaps([right, left]) == [left]
    assert resolve_overlaps([SalientSpan(0, 5, "B"), SalientSpan(0, 5, "A")]) == [SalientSpan(0, 5, "A")]
    assert resolve_overlaps([SalientSpan(3, 3, "EMPTY")]) == []


def test_spans_go_to_the_sentence_that_holds_them_and_crossing_ones_are_counted():
    sentences = [(0, 10), (11, 20)]
    spans = [
        SalientSpan(0, 10, "A"),
        SalientSpan(12, 20, "B"),
        SalientSpan(8, 12, "CROSSES"),
        SalientSpan(10, 11, "BETWEEN"),
        SalientSpan(18, 25, "PAST"),
    ]
    held, crossing = split_by_sentence(spans, sentences)
    assert held == [[SalientSpan(0, 10, "A")], [SalientSpan(1, 9, "B")]]
    assert crossing == 3


@given(some_spans)
def test_every_span_is_held_once_or_counted(spans):
    sentences = [(0, 6), (7, 7), (7, 15), (16, 30)]
    held, crossing = split_by_sentence(spans, sentences)
    assert sum(map(len, held)) + crossing == len(spans)
    for (start, end), here in zip(sentences, held, strict=True):
        assert all(span.start >= 0 and span.end <= end - start for span in here)


def test_only_wordpieces_wholly_within_the_span_are_covered():
    pieces = [(0, 3), (4, 7), (7, 9), (10, 14)]
    assert covered_tokens(SalientSpan(4, 9, "A"), pieces) == (1, 3)
    assert covered_tokens(SalientSpan(5, 14, "A"), pieces) == (2, 4)
    assert covered_tokens(SalientSpan(4, 5, "A"), pieces) is None
    assert covered_tokens(SalientSpan(0, 14, "A"), [(0, 0), *pieces]) == (1, 5)  # a piece of no character is nowhere


def test_a_span_that_begins_or_ends_inside_a_token():
    offsets = [(0, 3), (4, 6), (6, 7)]  # 서울은 수도 이
    begins, ends, whole = SalientSpan(5, 6, "E"), SalientSpan(0, 2, "E"), SalientSpan(4, 7, "E")
    assert covered_tokens(begins, offsets) is None and covered_tokens(ends, offsets) is None
    assert covered_tokens(begins, offsets, joined=True) == (1, 2)
    assert covered_tokens(ends, offsets, joined=True) == (0, 1)
    assert covered_tokens(whole, offsets, joined=True) == covered_tokens(whole, offsets) == (1, 3)
    assert covered_tokens(SalientSpan(2, 6, "E"), offsets, joined=True) == (1, 2)  # what lies within, if something does
