"""Blocks are read back from their artifact as they were written, and texts from a mapped file."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from realmctl.corpus.corpus import BlockTexts, Corpus
from tests.fixtures.blocks import make_blocks


def test_a_block_is_read_back(tmp_path):
    corpus = Corpus(make_blocks(tmp_path / "blocks", {"T": [["One.", "[[Two (number)|Two]] is here."]]}))
    block = corpus.block(0)
    assert (block.id, block.document, block.title, block.text) == ("0-0", "0", "T", "One. Two is here.")
    assert block.sentence_texts() == ["One.", "Two is here."]
    assert block.anchors == ((5, 8, "Two (number)"),)
    assert list(corpus) == [block]
    assert block.wordpieces.body == corpus.tokens(0).tobytes()
    assert block.wordpieces.title == corpus.title(0).tobytes()
    assert block.wordpieces.sentence_starts == corpus.sentences(0).tolist() == [0, 2]


@given(st.lists(st.text()))
def test_texts_that_go_in_come_out(texts):
    held = BlockTexts(iter(texts))
    assert [held[row] for row in range(len(held))] == texts


def test_rows_of_a_uid_are_all_that_have_it(chain):
    corpus = Corpus(chain.blocks)
    for uid in [*corpus.uid.tolist(), 3]:
        wanted = [row for row, each in enumerate(corpus.uid.tolist()) if each == uid]
        assert corpus.rows_of(np.uint64(uid)).tolist() == wanted
