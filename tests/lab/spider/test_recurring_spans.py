"""Recurring spans against their definition, spelled out by loops over every run of words."""

from __future__ import annotations

import unicodedata
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.corpus.corpus import Corpus
from realmctl.lab.spider.recurring_spans import LONGEST, NO_WORD, BlockWords, WordTable, recurring_spans
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.data.own_blocks import rows_by_document
from tests.fixtures import families
from tests.fixtures.blocks import make_blocks

COMMON = frozenset({0, 1})
BLOCK = st.lists(st.integers(NO_WORD, 4), max_size=14)


def words_of(ids):
    """Every word has two wordpieces."""
    return BlockWords(ids, list(range(0, 2 * len(ids) + 1, 2)))


def brute_force(blocks):
    """The places of each span, as words."""
    runs = [
        (block, first, stop)
        for block, ids in enumerate(blocks)
        for first, stop in product(range(len(ids)), range(1, len(ids) + 1))
        if 1 <= stop - first <= LONGEST and NO_WORD not in ids[first:stop]
    ]
    places = {}
    for block, first, stop in runs:
        span = tuple(blocks[block][first:stop])
        if span[0] not in COMMON and span[-1] not in COMMON:
            places.setdefault(span, []).append((block, first, stop))
    recurring = {span: at for span, at in places.items() if len({block for block, _, _ in at}) > 1}

    def within(place, other):
        return place[0] == other[0] and other[1] <= place[1] and place[2] <= other[2]

    def swallowed(span):
        return any(
            len(other) > len(span)
            and all(any(within(place, around) for around in recurring[other]) for place in recurring[span])
            for other in recurring
        )

    return {span: at for span, at in recurring.items() if not swallowed(span)}


@given(st.lists(BLOCK, max_size=4))
def test_the_spans_are_those_of_the_definition(blocks):
    found = recurring_spans([words_of(ids) for ids in blocks], COMMON)
    expected = [[(block, 2 * first, 2 * stop) for block, first, stop in at] for at in brute_force(blocks).values()]
    assert sorted(map(list, found)) == sorted(expected)


def test_a_span_has_at_most_ten_words():
    ids = list(range(5, 5 + LONGEST + 1))
    found = recurring_spans([words_of(ids), words_of(ids)], frozenset())
    assert [[(2 * (stop - start) // 4) for _, start, stop in places] for places in found] == [[LONGEST, LONGEST]] * 2


def test_words_are_whole_and_written_and_their_documents_are_counted(tmp_path):
    documents = {f"Page {n}": [[f"The Ada-{n} of old.", "The."], [f"Unseenword {n} of."]] for n in range(9)}
    blocks = make_blocks(tmp_path, documents)
    corpus, words = Corpus(blocks), Tokenizer.load(blocks.path)
    table = WordTable(corpus, words, rows_by_document(corpus))
    first, again = (table.words(corpus.tokens(0)) for _ in range(2))
    text = [words.tokenizer.id_to_token(int(piece)) for piece in corpus.tokens(0)]
    assert first == again and first.starts == [*range(len(text) + 1)]
    for piece, number in zip(text, first.ids, strict=True):
        assert (number == NO_WORD) == (not piece.isalnum()), piece
        assert (number in table.common) == (piece in ("the", "ada", "of", "old")), piece


def test_pieces_that_continue_a_word_belong_to_it(tmp_path):
    blocks = make_blocks(tmp_path, {"One": [["abc d"]], "Two": [["x"]]})
    corpus, words = Corpus(blocks), Tokenizer.load(blocks.path)
    table = WordTable(corpus, words, rows_by_document(corpus))
    spelled = np.array(words.tokenizer.encode("bcd abc", add_special_tokens=False).ids)
    assert [words.tokenizer.id_to_token(int(piece)) for piece in spelled] == ["b", "##c", "##d", "abc"]
    assert table.words(spelled).starts == [0, 3, 4] and NO_WORD not in table.words(spelled).ids
    assert table.words(spelled[:0]) == BlockWords([], [0])
    assert table.words(spelled[1:3]).starts == [0, 2]


@pytest.mark.parametrize("model_type", families.TYPES)
def test_spans_of_every_kind_of_tokenizer_are_whole_words(model_type, tmp_path):
    families.tokenizer(model_type).save_pretrained(tmp_path)
    words = Tokenizer.load(tmp_path)
    rows = [words.ids(text) for text in ("Ada wrote of Köln, in London.", "Köln liegt am Rhein; unbelievable Ada!")]
    table = WordTable(SimpleNamespace(tokens=rows.__getitem__), words, [np.arange(2)])
    found = recurring_spans([table.words(row) for row in rows], table.common)
    texts = {words.text_of(rows[block][start:stop]) for places in found for block, start, stop in places}
    plain = {unicodedata.normalize("NFD", text.lower()).replace("\u0308", "") for text in texts}
    assert plain == {"ada", "koln"}
