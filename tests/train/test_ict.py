"""The inverse cloze task: what is paired with what, and what it costs."""

from __future__ import annotations

import json
from itertools import chain as chain_of
from itertools import pairwise

import numpy as np
import pytest
import torch

from realmctl.artifact import Origin, Writer
from realmctl.errors import InputError
from realmctl.nn.retriever import Retriever
from realmctl.retrieval.bert import packer_of, tokenizer_of
from realmctl.retrieval.corpus import Corpus
from realmctl.train.ict import InverseCloze
from realmctl.train.loop import Compute, Schedule, train
from stages.ict_init import IctInit
from tests.fixtures_blocks import make_blocks
from tests.fixtures_chain import metrics_of
from tests.fixtures_retriever import fresh_retriever


def objective_of(chain, *, mask_rate=0.9, batch_size=8, blocks=None):
    blocks = blocks or chain.blocks
    retriever = Retriever.load(chain.retriever.path)
    return InverseCloze(
        retriever, Corpus(blocks), packer_of(tokenizer_of(blocks)), batch_size=batch_size, mask_rate=mask_rate, seed=0
    )


def pairs_of(objective, steps):
    return [pair for step in range(steps) for _, _, pairs in objective.draw(step) for pair in pairs]


def test_the_sentence_is_taken_out_of_its_block(chain):
    objective = objective_of(chain, mask_rate=1.0)
    corpus = objective.corpus
    for pair in pairs_of(objective, 10):
        row = next(
            row for row in range(len(corpus)) if sorted(corpus.tokens(row)) == sorted([*pair.body, *pair.sentence])
        )
        body, starts = corpus.tokens(row).tolist(), [*corpus.sentences(row).tolist(), len(corpus.tokens(row))]
        sentences = [body[a:b] for a, b in pairwise(starts)]
        k = sentences.index(pair.sentence.tolist())
        assert pair.body.tolist() == list(chain_of.from_iterable(sentences[:k] + sentences[k + 1 :]))
        assert np.array_equal(pair.title, corpus.title(row))


def test_it_is_left_in_as_often_as_asked(chain):
    pairs = pairs_of(objective_of(chain, mask_rate=0.9, batch_size=40), 50)
    assert np.mean([pair.masked for pair in pairs]) == pytest.approx(0.9, abs=0.03)
    for pair in pairs:
        inside = f" {' '.join(map(str, pair.sentence))} " in f" {' '.join(map(str, pair.body))} "
        assert inside != pair.masked


def test_the_title_is_on_the_blocks_side_alone(chain):
    objective = objective_of(chain)
    [(queries, blocks, pairs)] = objective.draw(0)
    cls, sep = objective.packer.cls_id, objective.packer.sep_id
    for row, pair in enumerate(pairs):
        assert queries.ids_BL[row, : queries.lengths_B[row]].tolist() == [cls, *pair.sentence, sep][:24]
        assert blocks.ids_BL[row, : blocks.lengths_B[row]].tolist() == [cls, *pair.title, sep, *pair.body, sep]
    assert not queries.segments_BL.any()


def test_the_loss_is_a_softmax_over_the_batch(chain):
    objective = objective_of(chain)
    objective.modules.eval()
    part = objective.draw(0)[0]
    with torch.no_grad():
        loss, sums = objective.loss(part)
        score = objective.retriever.embed_queries(part[0]) @ objective.retriever.embed_blocks(part[1]).T
    expected = [-(score[i, i] - torch.log(sum(score[i, j].exp() for j in range(8)))) for i in range(8)]
    assert loss.item() == pytest.approx(float(sum(expected) / 8), rel=1e-5)
    assert sums["accuracy"] == (pytest.approx(float((score.argmax(1) == torch.arange(8)).sum())), 8)


def test_blocks_of_one_sentence_give_no_pair(tmp_path, chain):
    documents = {"One": [["Only one."]], "Two": [["A first.", "A second."]], "Three": [["B first.", "B second."]]}
    blocks = make_blocks(tmp_path / "blocks", documents)
    assert objective_of(chain, blocks=blocks).rows.tolist() == [1, 2]
    with pytest.raises(InputError, match="ICT needs at least 2"):
        objective_of(chain, blocks=make_blocks(tmp_path / "poor", {"One": [["Only one."]]}))


def test_it_learns(tmp_path):
    """Every block has a word of its own, which each of its sentences says."""
    words = [
        "river",
        "stone",
        "lamp",
        "cloud",
        "horse",
        "bread",
        "music",
        "winter",
        "garden",
        "letter",
        "island",
        "mirror",
    ]
    documents = {
        f"Page {n}": [[f"The {word} is old.", f"A {word} again.", f"Some {word} there."]]
        for n, word in enumerate(words)
    }
    blocks = make_blocks(tmp_path / "blocks", documents)
    retriever = fresh_retriever(blocks)
    for module in retriever.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    objective = InverseCloze(
        retriever, Corpus(blocks), packer_of(tokenizer_of(blocks)), batch_size=12, mask_rate=0.9, seed=0
    )
    out = Writer(tmp_path, Origin("retriever", "ict-init", 1, {}, {}))
    train(objective, Schedule(60, 3e-3, 5, optimizer="adamw"), Compute(), out, "ict-init")
    losses = [json.loads(line)["loss"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert np.mean(losses[-12:]) < 0.75 * np.mean(losses[:12])


@pytest.mark.parametrize("towers", ["shared", "separate"])
def test_the_stage_makes_a_retriever(chain, tmp_path, towers):
    stage = IctInit(
        blocks=chain.blocks, bert="scratch:L1-H32", steps=2, batch_size=4, projection=16, query_length=20, towers=towers
    )
    made = stage.make(tmp_path / "retriever")
    retriever = Retriever.load(made.path)
    assert (retriever.towers, retriever.projection, retriever.query_length) == (towers, 16, 20)
    assert made.lineage["blocks"] == chain.blocks.content and made.has("tokenizer/vocab.txt")
    assert set(metrics_of(made)[0]) == {"step", "loss", "accuracy", "masked", "lr", "grad_norm"}
