"""`ask` and `fill-mask`: their numbers, and what people see of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BertModel

from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.models.reader import Reader
from realmctl.models.retriever import Retriever
from realmctl.models.span_head import SpanReader
from realmctl.retrieval.answering.asking import answers_text, ask, fill_masks, filled_text
from realmctl.tokens import wordpiece

SENTENCE = "Ada Lorn was born in [MASK] and worked for [MASK]."


def test_an_answer_with_its_evidence(chain, qa_model):
    value = ask("Where was Ada Lorn born?", qa_model.path, chain.blocks.path, 3)
    assert len(value["answers"]) == 3
    for found in value["answers"]:
        assert found["text"][found["start"] : found["end"]] == found["answer"]
        assert 0 < found["probability_of_block"] < 1
        record = next(record for record in Corpus(chain.blocks) if record.id == found["block"])
        assert record.title == found["title"]
    shown = answers_text(value)
    best = value["answers"][0]
    assert (
        shown.startswith(f"1. {best['answer']}   score") and f">>{best['answer']}<<" in shown and best["title"] in shown
    )


def test_evidence_is_cut_around_the_answer():
    found = {
        "answer": "here",
        "score": 1.0,
        "title": "T",
        "probability_of_block": 0.5,
        "text": "a" * 500 + "here" + "b\n" * 300,
        "start": 500,
        "end": 504,
    }
    line = answers_text({"answers": [found]}).splitlines()[1]
    assert line.startswith("   ... aaa") and "a>>here<<b b" in line and line.endswith("b  ...") and len(line) < 400
    assert answers_text({"answers": []}).startswith("no answer")


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
    assert ask("Where was Ada Lorn born? " * 40, qa_model.path, chain.blocks.path, 1)["answers"] == []
    assert ask("Where was Ada Lorn born?", qa_model.path, chain.blocks.path, 1)["answers"]


@pytest.mark.parametrize("question", ["", "  "])
def test_no_question(chain, qa_model, question):
    with pytest.raises(ConfigError, match="ask needs a question"):
        ask(question, qa_model.path, chain.blocks.path, 3)


def test_the_numbers_of_fill_mask(chain, model):
    value = fill_masks(SENTENCE, model.path, chain.blocks.path, 5, "fp32")
    retriever, reader = Retriever.load(model.part("retriever").path), Reader.load(model.part("reader").path)
    corpus, words = Corpus(chain.blocks), wordpiece.load(chain.blocks.path)
    pieces = [words.ids(part).tolist() for part in SENTENCE.split("[MASK]")]
    x = [*pieces[0], words.mask, *pieces[1], words.mask, *pieces[2]]
    tower = retriever.query_tower

    def embed(ids, segments):
        state = tower.bert(torch.tensor([ids]), token_type_ids=torch.tensor([segments])).pooler_output
        return tower.norm(tower.projection(state))[0]

    with torch.no_grad():
        query = embed([words.cls, *x, words.sep], [0] * (len(x) + 2))
        vectors = torch.from_numpy(np.load(model.part("index").file("vectors.npy")))
        rows = (vectors @ query).argsort(descending=True, stable=True)[:4].tolist()
        scores, fillings = [], []
        for row in [None, *rows]:
            title, body = ([], []) if row is None else (corpus.title(row).tolist(), corpus.tokens(row).tolist())
            scores.append(
                query
                @ embed(
                    [words.cls, *title, words.sep, *body, words.sep], [0] * (len(title) + 2) + [1] * (len(body) + 1)
                )
            )
            joint = [words.cls, *x, words.sep, *body, words.sep]
            logits = reader.mlm(
                torch.tensor([joint]), token_type_ids=torch.tensor([[0] * (len(x) + 2) + [1] * (len(body) + 1)])
            ).logits[0]
            fillings.append(logits[[at + 1 for at, piece in enumerate(x) if piece == words.mask]].softmax(-1))
    prior, fillings = torch.stack(scores).softmax(0), torch.stack(fillings)

    def blanks(probability):
        return [
            (words.tokenizer.id_to_token(int(best)), pytest.approx(float(share), rel=1e-4))
            for share, best in zip(*probability.max(-1), strict=True)
        ]

    def told(found):
        return [(blank["wordpiece"], blank["probability"]) for blank in found]

    assert told(value["without_retrieval"]) == blanks(fillings[0])
    assert told(value["with_retrieval"]) == blanks((prior[:, None, None] * fillings).sum(0))
    titles = ["(null document)", *(corpus.block(row).title for row in rows)]
    for found, title, share, filling in zip(value["candidates"], titles, prior, fillings, strict=True):
        assert found["title"] == title and found["probability"] == pytest.approx(float(share), rel=1e-4)
        assert told(found["masks"]) == blanks(filling)


def test_what_people_see_of_fill_mask(chain, model):
    value = fill_masks(SENTENCE, model.path, chain.blocks.path, 3)
    lines = filled_text(value).splitlines()
    assert (
        lines[0] == SENTENCE
        and lines[1].split()[:2] == ["without", "retrieval"]
        and lines[2].split()[:2] == ["with", "retrieval"]
    )
    assert len(lines) == 6 and "(null document)" in lines[3]


@pytest.mark.parametrize(
    ("sentence", "candidates"), [("No blank.", 8), ("A [MASK].", 1), ("word " * 600 + "[MASK]", 3)]
)
def test_probe_refuses(chain, model, sentence, candidates):
    with pytest.raises(ConfigError):
        fill_masks(sentence, model.path, chain.blocks.path, candidates)


@pytest.mark.parametrize("sentence", ["[MASK]", "[MASK] was born in Velford", "born in [MASK]"])
def test_a_blank_may_stand_anywhere(chain, model, sentence):
    assert len(fill_masks(sentence, model.path, chain.blocks.path, 3)["with_retrieval"]) == 1


def test_only_blanks_are_special(chain, model):
    value = fill_masks("The [SEP] of [MASK] is [CLS].", model.path, chain.blocks.path, 3)
    assert len(value["with_retrieval"]) == 1
