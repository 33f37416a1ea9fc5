"""The official text of an answer: whole words, single spaces, and the wordpieces' own part of a word where they align."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tokenizers import models

from realmctl.questions.official_text import official_answer_text
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.tokens.tokenizer_folder import bert_tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-.,'$"
VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    "wam",
    "##ley",
    "gibbon",
    "sao",
]


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    vocabulary = {token: number for number, token in enumerate(VOCABULARY)}
    return Tokenizer(bert_tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"), lowercase=True))


def official(words: Tokenizer, text: str, first: int, last: int) -> str:
    """The official text of the wordpieces `first` to `last` of `text`."""
    [(ids, offsets)] = words.encode_batch([text])
    pieces = words.tokens_of(ids[first : last + 1])
    return official_answer_text(text, int(offsets[first, 0]), int(offsets[last, 1]), pieces, words)


@pytest.mark.parametrize(
    ("text", "first", "last", "answer"),
    [
        ("Wam met Gibbon.", 0, 0, "Wam"),
        ("Gibbon, Wam", 0, 2, "Gibbon , Wam"),
        ("Wamley met", 0, 1, "Wamley"),
        ("Wamley met", 0, 0, "Wam"),  # the end of the word is not in the span: the part aligns
        ("Wamley met", 1, 1, "Wamley"),  # `##ley` is nowhere in the words: all of the word
        ("Gibbon Wamley", 0, 1, "Gibbon Wam"),
        ("Gibbon Wamley", 0, 2, "Gibbon Wamley"),
        ("a b Wamley a", 2, 4, "Wamley a"),
        ("S\u00e3o Wam", 0, 1, "S\u00e3o Wam"),
        ("Sa\u0303o Wamley", 0, 1, "Sa\u0303o Wamley"),  # an accent of its own: other lengths, all of the words
        ("Wam \u4e16Gibbon", 0, 2, "Wam \u4e16 Gibbon"),
        ("\u0416\u0416 Wam", 0, 1, "\u0416\u0416 Wam"),  # [UNK]
        ("Gib\u00adbon Wam", 0, 6, "Gib bon Wam"),  # a soft hyphen is a space there, and nothing to BERT
    ],
)
def test_official_texts(words, text, first, last, answer):
    [(ids, _)] = words.encode_batch([text])
    last = min(last, len(ids) - 1)
    assert official(words, text, first, last) == answer


@pytest.mark.parametrize(
    ("answer", "official_answer"),
    [
        ("Jean-Paul", "Jean - Paul"),
        ("3.5 million", "3 . 5 million"),
        ("U.S.", "U . S ."),
        ("Ph.D.", "Ph . D ."),
        ("O'Neal", "O ' Neal"),
        ("$1,000", "$ 1 , 000"),
        ("S\u00e3o Tom\u00e9", "S\u00e3o Tom\u00e9"),
        ("Ada", "Ada"),
    ],
)
def test_the_official_text_of_an_answer_has_blanks(words, answer, official_answer):
    """These answers are then wrong under every scorer."""
    text = f"gibbon {answer} gibbon"
    [(ids, _)] = words.encode_batch([text])
    assert official(words, text, 1, len(ids) - 2) == official_answer


TEXT = "Wamley paid $1,000 to S\u00e3o Gibbon-Wam, Ph.D., in x3.5a."


def test_every_span_is_made_of_the_words_it_touches(words):
    """Its text begins and ends at words, but for a span whose last wordpiece begins the word that it ends in."""
    [(ids, offsets)] = words.encode_batch([TEXT])
    pieces = words.tokens_of(ids)
    starts = [n for n, piece in enumerate(pieces) if not piece.startswith("##")] + [len(pieces)]
    word_of = [max(k for k, start in enumerate(starts) if start <= n) for n in range(len(pieces))]
    whole = [TEXT[offsets[a, 0] : offsets[b - 1, 1]] for a, b in pairwise(starts)]
    for first in range(len(pieces)):
        for last in range(first, min(first + 10, len(pieces))):
            expected = whole[word_of[first] : word_of[last] + 1]
            if not any(piece.startswith("##") for piece in pieces[first : last + 1]):
                expected[-1] = TEXT[offsets[last, 0] : offsets[last, 1]]
            assert official(words, TEXT, first, last) == " ".join(expected)
