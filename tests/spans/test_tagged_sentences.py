"""Every reason to drop a span, and the alignment of the ones that stay."""

from collections import Counter

import pytest

from realmctl.corpus.blocks import Block, PackedWordpieces
from realmctl.spans.salient import SalientSpan
from realmctl.spans.settings import TagSettings
from realmctl.spans.tagged_sentences import tagged_sentences
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures.blocks import word_tokenizer

TEXT = "Ada met Charles Babbage in June 1833. They wrote."
SENTENCES = ((0, 37), (38, 49))


class Fixed:
    """A tagger that always finds the same spans."""

    def __init__(self, *spans: tuple[int, int, str]) -> None:
        self.spans = [SalientSpan(*span) for span in spans]

    def tag(self, blocks):
        return [list(self.spans) for _ in blocks]


@pytest.fixture(scope="module")
def wordpiece():
    return Tokenizer(word_tokenizer([TEXT]))


def block_of(text, *sentences):
    return Block("1-0", "1", "Title", text, sentences, (), PackedWordpieces(b"", b"", ()))


def tagged(wordpiece, *spans, **rules):
    counts: Counter[str] = Counter()
    block = block_of(TEXT, *SENTENCES)
    sentences = list(tagged_sentences([block], Fixed(*spans), wordpiece, TagSettings(**rules), counts))
    return sentences, counts


def test_spans_are_placed_on_the_wordpieces_they_cover(wordpiece):
    (sentence,), counts = tagged(wordpiece, (8, 23, "PERSON"))
    assert sentence.text == TEXT[:37]
    assert [sentence.text[s.start : s.end] for s in sentence.spans] == ["Charles Babbage", "June 1833"]
    pieces = [wordpiece.tokenizer.id_to_token(int(i)) for i in sentence.tokens]
    assert [pieces[first:stop] for first, stop in sentence.token_spans] == [
        ["charles", "babbage"],
        ["june", "1833"],
    ]
    assert (counts["blocks"], counts["sentences"], counts["sentences_with_spans"], counts["spans"]) == (
        1,
        2,
        1,
        2,
    )
    assert (counts["spans_PERSON"], counts["spans_DATE"], counts["blocks_without_spans"]) == (1, 1, 0)


def test_a_sentence_with_an_unknown_word_is_a_query_like_any_other(wordpiece):
    """The official alignment gives up on [UNK], and on words that change length without their accents."""
    text = "Ada \U0001f388 met Charle\u0301s Babbage."
    spans = [(text.index("Charle"), text.index("."), "PERSON")]
    block = block_of(text, (0, len(text)))
    (sentence,) = tagged_sentences([block], Fixed(*spans), wordpiece, TagSettings(dates=False), Counter())
    pieces = [wordpiece.tokenizer.id_to_token(int(i)) for i in sentence.tokens]
    [(first, stop)] = sentence.token_spans
    assert "[UNK]" in pieces and pieces[first:stop] == ["charles", "babbage"]


def test_dates_are_counted_from_their_sentence(wordpiece):
    text = "They wrote. It was in 1905."
    block = block_of(text, (0, 11), (12, 27))
    (sentence,) = tagged_sentences([block], Fixed(), wordpiece, TagSettings(), Counter(), 7)
    assert (sentence.block, sentence.number, sentence.spans) == (7, 1, [SalientSpan(10, 14, "DATE")])
    assert sentence.record()["spans"] == [[10, 14, "DATE"]]


def test_sentences_without_a_span_are_left_out_and_numbered_all_the_same(wordpiece):
    (sentence,), _ = tagged(wordpiece, (43, 48, "X"), dates=False)
    assert (sentence.number, sentence.text, sentence.spans) == (1, "They wrote.", [SalientSpan(5, 10, "X")])
    none, counts = tagged(wordpiece, dates=False)
    assert none == [] and counts["blocks_without_spans"] == 1


@pytest.mark.parametrize(
    ("span", "reason", "rules"),
    [
        ((32, 45, "X"), "crossing", {}),
        ((9, 12, "X"), "unaligned", {}),
        ((8, 23, "X"), "too_long", {"max_masks": 1}),
        ((8, 23, "X"), "past_query", {"query_length": 5}),
    ],
)
def test_what_cannot_be_masked_is_dropped_and_counted(wordpiece, span, reason, rules):
    sentences, counts = tagged(wordpiece, span, dates=False, **rules)
    assert sentences == []
    assert {name: n for name, n in counts.items() if name.startswith("dropped_") and n} == {f"dropped_{reason}": 1}


def test_a_span_that_just_fits_is_kept(wordpiece):
    assert tagged(wordpiece, (8, 23, "X"), dates=False, max_masks=2, query_length=6)[0]


def test_a_dropped_span_does_not_push_out_the_shorter_ones_within_it(wordpiece):
    (sentence,), counts = tagged(wordpiece, (0, 23, "X"), (0, 3, "X"), dates=False, max_masks=2)
    assert sentence.spans == [SalientSpan(0, 3, "X")]
    assert counts["dropped_too_long"] == 1 and counts["dropped_overlapping"] == 0


def test_overlapping_spans_are_counted_and_the_longest_stays(wordpiece):
    (sentence,), counts = tagged(wordpiece, (8, 23, "X"), (8, 15, "X"), (8, 15, "X"), dates=False)
    assert sentence.spans == [SalientSpan(8, 23, "X")]
    assert counts["dropped_overlapping"] == 1


def test_numbers_are_left_out_unless_asked_for(wordpiece):
    assert tagged(wordpiece, (32, 36, "CARDINAL"), dates=False)[0] == []
    assert tagged(wordpiece, (32, 36, "CARDINAL"), dates=False, labels=("CARDINAL",))[0]
    (sentence,), _ = tagged(wordpiece, (8, 23, "PERSON"), labels=("DATE",))
    assert [span.label for span in sentence.spans] == ["DATE"]


def test_officially_long_spans_stay(wordpiece):
    (sentence,), counts = tagged(wordpiece, (8, 36, "X"), dates=False, max_masks=2, official=("long-spans",))
    assert sentence.token_spans == [(2, 7)] and counts["dropped_too_long"] == 0


def test_officially_overlapping_spans_stay_each_once(wordpiece):
    spans = [(8, 23, "X"), (8, 15, "X"), (8, 15, "Y"), (16, 23, "X")]
    (sentence,), counts = tagged(wordpiece, *spans, dates=False, official=("overlapping-spans",))
    assert [(span.start, span.end) for span in sentence.spans] == [(8, 15), (8, 23), (16, 23)]
    assert sentence.token_spans == [(2, 3), (2, 4), (3, 4)] and counts["spans"] == 3


@pytest.mark.parametrize(
    ("word", "stays"),
    [
        *(("met", True), ("\U0001f388", False), ("caf\u00e9", True), ("m\u0301et", False), ("\u0130", True)),
        *((f"m{char}et", False) for char in "\u200b\u00ad\u200d\ufeff\x07"),
        *((f"{char}met{char}", True) for char in "\u200b\u00ad\u200d\ufeff\x07"),
    ],
)
def test_officially_a_sentence_that_does_not_align_is_no_query(wordpiece, word, stays):
    """An accent of its own is a character that goes; within a letter it is none."""
    text = f"Ada {word} Charles."
    block = block_of(text, (0, len(text)))
    rules, counts = TagSettings(dates=False, official=("unknown-words",)), Counter()
    found = list(tagged_sentences([block], Fixed((0, 3, "X")), wordpiece, rules, counts))
    assert len(found) == stays and counts["dropped_unknown_words"] == (not stays)


def test_letters_that_come_apart_do_not_align():
    words = Tokenizer(word_tokenizer(["\ud55c caf\u00e9"]))
    assert words.aligns("caf\u00e9", words.ids("caf\u00e9")) and not words.aligns("\ud55c", words.ids("caf\u00e9"))
