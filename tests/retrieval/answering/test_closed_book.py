"""Answers without documents, against filling every length by hand with transformers' own model."""

from __future__ import annotations

import pytest
import torch

from realmctl.errors import MismatchError
from realmctl.models.bert.files import load_masked_lm
from realmctl.retrieval.answering.closed_book import ClosedBookAnswerer
from realmctl.retrieval.answering.qa_model import QaModel
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import baseline
from tests.fixtures.transformers_bert import as_transformers

QUESTIONS = ["Where was Ada Lorn born?", "Which firm?"]


@pytest.fixture(scope="module")
def made(chain):
    return baseline(chain, "none", steps=3, span_width=4).make(chain.folder / "qa-none")


@pytest.fixture(scope="module")
def answerer(chain, made):
    return QaModel.open(made, blocks=chain.blocks, device="cpu", precision="fp32").answerer


def test_the_best_filling_of_all_lengths_wins(answerer, made):
    mlm, has_head = load_masked_lm(made.part("reader").path)
    assert has_head and isinstance(answerer, ClosedBookAnswerer)
    theirs = as_transformers(mlm)
    words, tokens = answerer.wordpiece, answerer.tokens(QUESTIONS)
    for question, answers in zip(tokens, answerer.answer(tokens, [[], []], 9), strict=True):
        found = []
        for blanks in range(1, 5):
            ids = [words.cls, *question, *[words.mask] * blanks, words.sep]
            with torch.no_grad():
                log_prob = theirs(torch.tensor([ids])).logits[0, -1 - blanks : -1].log_softmax(-1)
            for special in (words.pad, words.unk, words.cls, words.sep, words.mask):
                log_prob[:, special] = -torch.inf
            best, word = log_prob.max(-1)
            found.append((float(best.mean()), words.tokenizer.decode(word.tolist())))
        found.sort(reverse=True)
        assert [answer.text for answer in answers] == [text for _, text in found]
        assert [answer.score for answer in answers] == pytest.approx([score for score, _ in found], rel=1e-4)
        assert all(answer.hit is None for answer in answers)


def test_another_vocabulary_is_refused(made, tmp_path):
    other = make_blocks(tmp_path / "blocks", {"Zoe": [["Zoe Quux went to [[Xanadu]].", "Wholly other words."]]})
    with pytest.raises(MismatchError, match="vocabular"):
        QaModel.open(made, blocks=other)
