"""Receipts: the probability of an answer, with and without blocks, and what the weights say, against plain computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.models.reader import Reader
from realmctl.retrieval.answering import receipts
from realmctl.retrieval.answering.asking import answers_text, ask, resolve_index
from realmctl.retrieval.answering.open_answerer import open_answerer
from realmctl.tokens import wordpiece
from tests.fixtures.chain import baseline

QUESTION = "Where was Ada Lorn born?"


@pytest.fixture(scope="module")
def answerer(chain, qa_model):
    return open_answerer(qa_model, chain.blocks, precision="fp32")


@pytest.fixture(scope="module")
def closed_book(chain, tmp_path_factory):
    return baseline(chain, "none").make(tmp_path_factory.mktemp("closed") / "qa-model")


def spans_of(answerer, tokens, hits):
    """(text, score of span and block) of every span, by the answerer's own list of all spans."""
    read = [(tokens, hit) for hit in hits[: answerer.reader_beam]]
    spans = [span for own in answerer._read(read, 10**6) for span in own]
    return [answerer._cut(span).text for span in spans], torch.tensor([span.score for span in spans]).double()


def test_the_probability_is_a_softmax_over_all_spans(answerer):
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


def test_without_blocks_the_next_best_are_read(answerer):
    tokens = answerer.tokens([QUESTION])[0]
    every = answerer.searcher.search([tokens], 40)[0]
    removed = frozenset(hit.row for hit in (every[0], every[2]))
    found = receipts.hits_without(answerer.searcher, tokens, 3, removed)
    assert [hit.row for hit in found] == [every[place].row for place in (1, 3, 4)]
    assert sum(hit.probability for hit in found) == pytest.approx(1)
    gap = np.log(found[0].probability / found[1].probability)
    assert gap == pytest.approx(every[1].score - every[3].score, rel=1e-3)
    everything = frozenset(hit.row for hit in every)
    assert receipts.hits_without(answerer.searcher, tokens, 3, everything) == []


def test_blocks_are_named_by_block_document_and_title(answerer):
    corpus = answerer.searcher.corpus
    record = corpus.block(5)
    assert receipts.named_rows(corpus, [record.id]) == [5]
    own = [row for row in range(len(corpus)) if corpus.block(row).title == record.title]
    assert receipts.named_rows(corpus, [record.title]) == own
    assert receipts.named_rows(corpus, [record.document, record.id]) == own
    with pytest.raises(InputError, match="'nobody'"):
        receipts.named_rows(corpus, [record.id, "nobody"])


def test_a_receipt(chain, qa_model):
    plain = ask(QUESTION, qa_model.path, chain.blocks.path, 2)
    best = plain["answers"][0]
    value = ask(QUESTION, qa_model.path, chain.blocks.path, 2, without=[best["title"]])
    assert value["answers"] == plain["answers"]
    found = value["without"]
    assert best["block"] in found["blocks"]
    assert not {answer["block"] for answer in found["answers"]} & set(found["blocks"])
    assert found["text"] == best["answer"] and 0 < found["probability_before"] <= 1
    assert (found["probability_after"] > 0) == bool(found["blocks_with_answer"])
    shown = answers_text(value)
    assert "without 2 blocks" in shown and f"probability of {best['answer']!r}" in shown


def test_without_every_block_there_is_no_answer(chain, qa_model):
    every = [record.id for record in Corpus(chain.blocks)]
    found = ask(QUESTION, qa_model.path, chain.blocks.path, 1, without=every)["without"]
    assert found["answers"] == [] and found["probability_after"] == 0 and not found["blocks_with_answer"]


@pytest.mark.parametrize("kind", ["model", "closed_book"])
def test_a_probe_reads_no_document(chain, model, closed_book, kind):
    artifact = {"model": model, "closed_book": closed_book}[kind]
    found = receipts.probe(artifact, chain.blocks, QUESTION, "Velford Ada")
    words = wordpiece.load(chain.blocks.path)
    question, wanted = words.ids(QUESTION).tolist(), words.ids("Velford Ada").tolist()
    ids = [words.cls, *question, *[words.mask] * len(wanted), words.sep]
    segments = [0] * len(ids)
    if kind == "model":  # the null document: an empty body
        ids, segments = [*ids, words.sep], [*segments, 1]
    reader = Reader.load(artifact.part("reader").path)
    with torch.no_grad():
        logits = reader.mlm(torch.tensor([ids]), token_type_ids=torch.tensor([segments])).logits[0]
    log_prob = logits[1 + len(question) : 1 + len(question) + len(wanted)].log_softmax(-1)
    expected = sum(float(log_prob[place, word]) for place, word in enumerate(wanted))
    assert found.wordpieces == len(wanted)
    assert found.log_probability == pytest.approx(expected, rel=1e-4)
    assert found.best_log_probability >= found.log_probability


def test_what_cannot_be_asked(chain, qa_model, model, closed_book, tmp_path):
    with pytest.raises(ConfigError, match="reads none"):
        ask(QUESTION, closed_book.path, chain.blocks.path, 1, without=["Ada Lorn"])
    with pytest.raises(MismatchError, match="fill masks"):
        ask(QUESTION, qa_model.path, chain.blocks.path, 1, probe=qa_model.path)
    with pytest.raises(MismatchError, match="an index is needed"):
        resolve_index(chain.blocks.path)
    with pytest.raises(ConfigError, match="no index of vectors"):
        ask(QUESTION, closed_book.path, chain.blocks.path, 1, index=chain.index.path)
    with pytest.raises(ConfigError, match="wordpieces"):
        receipts.probe(model, chain.blocks, QUESTION, " ")
    assert resolve_index(model.path).content == model.part("index").content


def test_another_index_is_searched(chain, qa_model, model):
    own = ask(QUESTION, qa_model.path, chain.blocks.path, 2)
    assert ask(QUESTION, qa_model.path, chain.blocks.path, 2, index=model.path) == own
    with pytest.raises(MismatchError):  # vectors of another retriever
        ask(QUESTION, qa_model.path, chain.blocks.path, 2, index=open_artifact(chain.index.path).path)
