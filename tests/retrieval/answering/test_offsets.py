"""From wordpieces back to the characters that the author wrote."""

from __future__ import annotations

import json

import numpy as np
import pytest

from realmctl.corpus.corpus import Corpus
from realmctl.errors import MismatchError
from realmctl.retrieval.answering.offsets import char_offsets, covered
from realmctl.tokens.tokenizer import Tokenizer
from stages.chunk import Chunk
from tests.fixtures.blocks import make_blocks

TEXT = [
    "Jean-Paul paid $1,000 in the U.S. for it.",
    "She holds a Ph.D. and sold 3.5 million.",
    "Beyoncé met O'Neal — in São Tomé, a [MASK] in a [SEP].",
]


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("w")
    lines = [{"id": "1", "title": "One", "text": " ".join(TEXT)}, {"id": "2", "title": "Two", "text": "Another page."}]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Chunk(corpus=(folder / "corpus.jsonl",), tokenizer="train:200", workers=1).make(folder / "blocks")


@pytest.mark.parametrize(
    "answer",
    [
        "Jean-Paul",
        "3.5 million",
        "U.S.",
        "Ph.D.",
        "O'Neal",
        "$1,000",
        "Beyoncé",
        "São Tomé",
        "[MASK]",
        "Beyoncé met O'Neal",
    ],
)
def test_the_text_of_an_answer_is_the_authors(blocks, answer):
    """Joining wordpieces loses all of these (FIDELITY of ORQA's and HF's decoding)."""
    corpus, words = Corpus(blocks), Tokenizer.load(blocks.path)
    offsets = char_offsets(corpus, words, 0)
    text, ids = corpus.block(0).text, words.ids(answer).tolist()
    body = corpus.tokens(0).tolist()
    first = next(at for at in range(len(body)) if body[at : at + len(ids)] == ids)
    assert text[offsets[first, 0] : offsets[first + len(ids) - 1, 1]] == answer


def test_every_wordpiece_has_its_characters(blocks):
    corpus, words = Corpus(blocks), Tokenizer.load(blocks.path)
    offsets, text = char_offsets(corpus, words, 0), corpus.block(0).text
    assert len(offsets) == len(corpus.tokens(0))
    assert "".join(text[a:b] for a, b in offsets.tolist()) == text.replace(" ", "")


def test_spans_and_back(blocks):
    corpus, words = Corpus(blocks), Tokenizer.load(blocks.path)
    offsets, text = char_offsets(corpus, words, 0), corpus.block(0).text
    at = text.index("U.S.")
    [(first, last)] = covered(offsets, [(at, at + 4), (at, at + 4), (0, len(text))], widest=10)
    assert text[offsets[first, 0] : offsets[last, 1]] == "U.S."
    assert covered(offsets, [(at + 1, at + 1)], widest=10) == []


def test_another_tokenizer(blocks, tmp_path):
    other = make_blocks(tmp_path / "blocks", {"Two": [["Quite other words."]]})
    with pytest.raises(MismatchError, match="wordpieces"):
        char_offsets(Corpus(blocks), Tokenizer.load(other.path), 0)


def test_a_span_inside_a_wordpiece_has_that_wordpiece():
    offsets = np.array([[0, 3], [4, 6], [6, 7], [8, 12]], np.int32)  # 서울은 수도 이 다섯개의
    assert covered(offsets, [(0, 2)], widest=10) == [(0, 0)]  # it ends inside
    assert covered(offsets, [(5, 6)], widest=10) == [(1, 1)]  # it begins inside
    assert covered(offsets, [(4, 7)], widest=10) == [(1, 2)]
    assert covered(offsets, [(2, 6)], widest=10) == [(1, 1)]  # the wordpieces that lie within, where some do
    assert covered(offsets, [(3, 4)], widest=10) == []  # a blank


def test_a_run_may_be_as_wide_as_it_may_be():
    word_N = np.array([[0, 1], [2, 3], [4, 5], [6, 7]], np.int32)
    assert covered(word_N, [(0, 5)], 3) == [(0, 2)]
    assert covered(word_N, [(0, 7)], 3) == []
