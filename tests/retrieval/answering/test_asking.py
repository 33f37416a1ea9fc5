"""`ask`: its numbers, and what people see of them; ablations and closed-book probes, against plain computations."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from realmctl.artifacts import open_artifact
from realmctl.corpus.blocks import Block, PackedWordpieces
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.models.bert.modules import BertModel
from realmctl.models.retriever import Retriever
from realmctl.models.span_head import SpanReader
from realmctl.retrieval.answering.answerer import Answer
from realmctl.retrieval.answering.asking import ask, named_rows
from realmctl.retrieval.answering.qa_model import AnsweredQuestion, QaModel
from realmctl.retrieval.search.block_search import Hit
from tests.fixtures.chain import baseline

QUESTION = "Where was Ada Lorn born?"


@pytest.fixture(scope="module")
def qa(chain, qa_model):
    return QaModel.open(qa_model, blocks=chain.blocks, precision="fp32")


@pytest.fixture(scope="module")
def closed_book(chain, tmp_path_factory):
    return baseline(chain, "none").make(tmp_path_factory.mktemp("closed") / "qa-model")


def test_an_answer_with_its_evidence(chain, qa_model):
    asked = ask(QUESTION, qa_model.path, chain.blocks.path, 3)
    value = json.loads(json.dumps(asked.record()))
    assert value["question"] == QUESTION and len(value["answers"]) == 3
    for found in value["answers"]:
        assert found["text"][found["start"] : found["end"]] == found["answer"]
        assert 0 < found["probability_of_block"] < 1
        block = next(block for block in Corpus(chain.blocks) if block.id == found["block"])
        assert (block.title, block.text) == (found["title"], found["text"])
    best = value["answers"][0]
    assert all(told in str(asked) for told in (f"1. {best['answer']}", f">>{best['answer']}<<", best["title"]))


def test_evidence_is_cut_around_the_answer():
    block = Block("1-0", "1", "T", "a" * 500 + "here" + "b\n" * 300, (), (), PackedWordpieces(b"", b"", ()))
    shown = str(AnsweredQuestion("?", (Answer("here", 1.0, Hit(0, block, 1.0, 0.5), 500, 504),)))
    line = shown.splitlines()[1]
    assert line.startswith("   ... aaa") and "a>>here<<b b" in line and line.endswith("b  ...") and len(line) < 400
    assert str(AnsweredQuestion("?", ()))


def test_a_question_longer_than_the_positions_of_a_small_model(chain, qa_model, monkeypatch):
    """The models have 512 positions, and are cut to 40 here: question, and question with block."""
    plain = {loader: loader.load.__func__ for loader in (Retriever, SpanReader)}

    def load(cls, *arguments):
        loaded = plain[cls](cls, *arguments)
        for bert in [module for module in loaded.modules() if isinstance(module, BertModel)]:
            bert.config.max_position_embeddings = 40
            bert.embeddings.position_embeddings.weight.data = bert.embeddings.position_embeddings.weight.data[:40]
        return loaded

    for loader in plain:
        monkeypatch.setattr(loader, "load", classmethod(load))
    assert ask("Where was Ada Lorn born? " * 40, qa_model.path, chain.blocks.path, 1).answers == ()
    assert ask("Where was Ada Lorn born?", qa_model.path, chain.blocks.path, 1).answers


def spans_of(answerer, tokens, hits):
    """(text, score of span and block) of every span, by the answerer's own list of all spans."""
    read = hits[: answerer.reader_beam]
    of_block = zip(read, answerer._read([(tokens, hit) for hit in read], 10**6), strict=True)
    answers = [answerer._cut(span, hit) for hit, own in of_block for span in own]
    return [answer.text for answer in answers], torch.tensor([answer.score for answer in answers]).double()


def test_the_probability_is_a_softmax_over_all_spans(qa):
    answerer = qa.answerer
    tokens = answerer.tokens([QUESTION])[0]
    hits = answerer.searcher.search([tokens], answerer.reader_beam)[0]
    texts, scores = spans_of(answerer, tokens, hits)
    shares = scores.softmax(0)
    for wanted in (texts[0], texts[len(texts) // 2], texts[-1]):
        same = [text.casefold() == wanted.casefold() for text in texts]
        expected = sum(float(share) for is_same, share in zip(same, shares, strict=True) if is_same)
        assert expected > 0
        assert answerer.probability(tokens, hits, wanted) == pytest.approx(expected, rel=1e-4)
    assert answerer.probability(tokens, hits, "nowhere at all") == 0
    assert answerer.probability(tokens, [], "Ada Lorn") == 0


def test_without_blocks_the_next_best_are_read(qa):
    answerer = qa.answerer
    tokens = answerer.tokens([QUESTION])[0]
    every = answerer.searcher.search([tokens], 40)[0]
    removed = [hit.row for hit in (every[0], every[2])]
    [found] = qa.retrieved([QUESTION], [tokens], 3, removed)
    assert [hit.row for hit in found] == [every[place].row for place in (1, 3, 4)]
    assert sum(hit.probability for hit in found) == pytest.approx(1)
    gap = np.log(found[0].probability / found[1].probability)
    assert gap == pytest.approx(every[1].score - every[3].score, rel=1e-3)
    everything = [hit.row for hit in every]
    assert qa.retrieved([QUESTION], [tokens], 3, everything) == [[]]


def test_blocks_are_named_by_block_document_and_title(qa):
    corpus = qa.blocks
    block = corpus[5]
    assert named_rows(corpus, [block.id]) == [5]
    own = [row for row in range(len(corpus)) if corpus[row].title == block.title]
    assert named_rows(corpus, [block.title]) == own
    assert named_rows(corpus, [block.document, block.id]) == own
    with pytest.raises(InputError, match="'nobody'"):
        named_rows(corpus, [block.id, "nobody"])


def test_an_ablation(chain, qa_model):
    plain = ask(QUESTION, qa_model.path, chain.blocks.path, 2)
    best = plain.answers[0]
    asked = ask(QUESTION, qa_model.path, chain.blocks.path, 2, without=[best.hit.block.title])
    value, found = asked.record(), asked.without
    assert value["answers"] == plain.record()["answers"]
    assert best.hit.block.id in found.blocks and len(found.blocks) == 2
    assert not {answer["block"] for answer in value["without"]["answers"]} & set(found.blocks)
    assert found.text == best.text and 0 < found.probability_before <= 1
    assert (found.probability_after > 0) == bool(found.blocks_with_answer)
    assert all(told in str(asked) for told in (*found.blocks, repr(best.text), f"{found.probability_before:.4f}"))


def test_without_every_block_there_is_no_answer(chain, qa_model):
    every = [block.id for block in Corpus(chain.blocks)]
    found = ask(QUESTION, qa_model.path, chain.blocks.path, 1, without=every).without
    assert found.answers == () and found.probability_after == 0 and not found.blocks_with_answer


def test_what_cannot_be_asked(chain, qa_model, model, closed_book):
    with pytest.raises(ConfigError):
        ask("  ", qa_model.path, chain.blocks.path, 1)
    with pytest.raises(ConfigError, match="--probe"):
        ask(QUESTION, closed_book.path, chain.blocks.path, 1, without=["Ada Lorn"])
    with pytest.raises(ConfigError, match="index"):
        ask(QUESTION, closed_book.path, chain.blocks.path, 1, index=chain.index.path)


def test_another_index_is_searched(chain, qa_model, model):
    own = ask(QUESTION, qa_model.path, chain.blocks.path, 2)
    assert ask(QUESTION, qa_model.path, chain.blocks.path, 2, index=model.path) == own
    for other in (chain.index.path, chain.blocks.path):  # vectors of another retriever, and no vectors
        with pytest.raises(MismatchError):
            ask(QUESTION, qa_model.path, chain.blocks.path, 2, index=open_artifact(other).path)
