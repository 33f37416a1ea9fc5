"""The inverse cloze task: what is paired with what, and what it costs."""

from __future__ import annotations

import json
from itertools import chain as chain_of
from itertools import pairwise

import numpy as np
import pytest
import torch

from realmctl.artifacts import Origin, Writer
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.ict import InverseClozeObjective
from realmctl.training.loop import train
from realmctl.training.settings.base import TrainSettings
from realmctl.training.settings.retriever import IctSettings
from stages.ict_init import IctInit
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import metrics_of
from tests.fixtures.retriever import fresh_retriever


def objective_of(chain, *, mask_rate=0.9, batch_size=8, blocks=None, retriever=None, null_share=0.0, chunk=0, **more):
    blocks, retriever = blocks or chain.blocks, retriever or Retriever.load(chain.retriever.path)
    return InverseClozeObjective(
        retriever,
        Corpus(blocks),
        Collator.of(Tokenizer.load(blocks.path)),
        IctSettings(
            blocks=blocks,
            encoder=None,
            batch_size=batch_size,
            micro_batch=chunk,
            mask_rate=mask_rate,
            null_share=null_share,
            **more,
        ),
    )


def pairs_of(objective, steps):
    return [pair for step in range(steps) for chunk in objective.draw(step) for pair in chunk.examples]


def test_the_sentence_is_taken_out_of_its_block(chain):
    objective = objective_of(chain, mask_rate=1.0)
    corpus = objective.corpus
    for pair in pairs_of(objective, 10):
        [(title, rest)] = pair.blocks
        row = next(row for row in range(len(corpus)) if sorted(corpus.tokens(row)) == sorted([*rest, *pair.query]))
        body, starts = corpus.tokens(row).tolist(), [*corpus.sentences(row).tolist(), len(corpus.tokens(row))]
        sentences = [body[a:b] for a, b in pairwise(starts)]
        k = sentences.index(pair.query.tolist())
        assert rest.tolist() == list(chain_of.from_iterable(sentences[:k] + sentences[k + 1 :]))
        assert np.array_equal(title, corpus.title(row))


def test_it_is_left_in_as_often_as_asked(chain):
    pairs = pairs_of(objective_of(chain, mask_rate=0.9, batch_size=40), 50)
    assert np.mean([pair.marks["masked"] for pair in pairs]) == pytest.approx(0.9, abs=0.03)
    for pair in pairs:
        inside = f" {' '.join(map(str, pair.query))} " in f" {' '.join(map(str, pair.blocks[0][1]))} "
        assert inside != pair.marks["masked"]


def test_officially_blocks_of_one_sentence_are_drawn_as_often_as_a_sentence_stays_in(tmp_path):
    """The official code draws all blocks, and leaves out one of a single sentence that is to be removed."""
    pages = {f"Page {n}": [[f"Number {n} is here.", "It is so."], [f"Alone {n}."]] for n in range(20)}
    blocks = make_blocks(tmp_path / "blocks", pages)
    retriever = fresh_retriever(blocks)
    plain, official = (
        InverseClozeObjective(
            retriever,
            Corpus(blocks),
            Collator.of(Tokenizer.load(blocks.path)),
            IctSettings(blocks=blocks, encoder=None, batch_size=11, mask_rate=0.7, official=official),
        )
        for official in ((), ("single-sentences",))
    )

    def body(pair):
        return pair.blocks[0][1]

    assert all(len(body(pair)) for pair in pairs_of(plain, 20))
    pairs = pairs_of(official, 260)  # 110 passes of 20 + 6 blocks
    alone = [pair for pair in pairs if len(pair.query) == len(body(pair))]
    assert len(alone) == 110 * 6 and all(np.array_equal(pair.query, body(pair)) for pair in alone)
    assert not any(pair.marks["masked"] for pair in alone)
    assert len({tuple(pair.query) for pair in alone}) == 20
    assert np.mean([pair.marks["masked"] for pair in pairs if len(pair.query) != len(body(pair))]) > 0.65


def test_the_title_is_on_the_blocks_side_alone(chain):
    objective = objective_of(chain)
    [chunk] = objective.draw(0)
    queries, blocks = chunk.queries, chunk.blocks
    [cls], [sep] = objective.collator.frame.before, objective.collator.frame.after
    for row, pair in enumerate(chunk.examples):
        [(title, body)] = pair.blocks
        assert queries.ids_BL[row, : queries.lengths_B[row]].tolist() == [cls, *pair.query, sep][:24]
        assert blocks.ids_BL[row, : blocks.lengths_B[row]].tolist() == [cls, *title, sep, *body, sep]
    assert not queries.segments_BL.any()


def test_the_loss_is_a_softmax_over_the_batch(chain):
    objective = objective_of(chain)
    objective.modules.eval()
    part = objective.draw(0)[0]
    with torch.no_grad():
        loss, sums = objective.loss(part)
        score = objective.retriever.embed_queries(part.queries) @ objective.retriever.embed_blocks(part.blocks).T
    expected = [-(score[i, i] - torch.log(sum(score[i, j].exp() for j in range(8)))) for i in range(8)]
    assert loss.item() == pytest.approx(float(sum(expected) / 8), rel=1e-5)
    assert sums["accuracy"] == (pytest.approx(float((score.argmax(1) == torch.arange(8)).sum())), 8)


def test_blocks_of_one_sentence_give_no_pair(tmp_path, chain):
    documents = {"One": [["Only one."]], "Two": [["A first.", "A second."]], "Three": [["B first.", "B second."]]}
    blocks = make_blocks(tmp_path / "blocks", documents)
    assert objective_of(chain, blocks=blocks).rows.tolist() == [1, 2]
    with pytest.raises(InputError, match="2"):
        objective_of(chain, blocks=make_blocks(tmp_path / "poor", {"One": [["Only one."]]}))


def test_a_share_of_the_sentences_may_not_choose_their_block(chain):
    objective = objective_of(chain, batch_size=40, null_share=0.3)
    pairs = pairs_of(objective, 50)
    assert np.mean([pair.withheld for pair in pairs]) == pytest.approx(0.3, abs=0.03)
    without = pairs_of(objective_of(chain, batch_size=40), 1)
    assert not any(pair.withheld for pair in without) and np.array_equal(without[0].query, pairs[0].query)


def test_the_null_document_is_right_for_those(chain):
    objective = objective_of(chain, null_share=0.5)
    objective.modules.eval()
    chunk = objective.draw(0)[0]
    queries, blocks, pairs = chunk.queries, chunk.blocks, chunk.examples
    assert {pair.withheld for pair in pairs} == {True, False}
    null = objective.collator.block([np.array([], int)], [np.array([], int)])
    with torch.no_grad():
        loss, sums = objective.loss(chunk)
        choices = torch.cat([objective.retriever.embed_blocks(blocks), objective.retriever.embed_blocks(null)])
        score = objective.retriever.embed_queries(queries) @ choices.T
    expected, right = [], 0
    for i, pair in enumerate(pairs):
        target, offered = (8, [j for j in range(9) if j != i]) if pair.withheld else (i, range(9))
        expected.append(torch.log(sum(score[i, j].exp() for j in offered)) - score[i, target])
        right += max(offered, key=lambda j: float(score[i, j])) == target
    assert loss.item() == pytest.approx(float(sum(expected) / 8), rel=1e-5)
    assert sums["accuracy"] == (pytest.approx(right), 8)


@pytest.mark.parametrize("null_share", [0.0, 0.5])
def test_what_the_start_knew_is_distilled(chain, null_share):
    """Against the sum over queries and blocks of p0 log(p0 / p), after the weights have changed; the start stays as it was."""
    objective = objective_of(chain, null_share=null_share, distill_start=3.0)
    plain = objective_of(chain, null_share=null_share, retriever=objective.retriever)
    objective.modules.eval()
    [chunk], [same] = objective.draw(0), plain.draw(0)
    before, _ = objective.loss(chunk)
    assert before.item() == pytest.approx(
        plain.loss(same)[0].item(), rel=1e-6
    )  # the start differs in nothing from itself
    with torch.no_grad():
        for parameter in objective.retriever.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    [again] = objective.draw(0)
    assert torch.equal(again.start_BC, chunk.start_BC) and not chunk.start_BC.requires_grad

    def log_softmax(retriever):
        blocks = retriever.embed_blocks(chunk.blocks)
        if null_share:
            blocks = torch.cat([blocks, retriever.embed_blocks(chunk.null)])
        score = retriever.embed_queries(chunk.queries) @ blocks.T
        for row, pair in enumerate(chunk.examples):
            if pair.withheld:
                score[row, row] = -1e30
        return score.log_softmax(1)

    with torch.no_grad():
        now, then = log_softmax(objective.retriever), log_softmax(Retriever.load(chain.retriever.path))
    expected = sum(
        float(then[row, column].exp() * (then[row, column] - now[row, column]))
        for row in range(8)
        for column in range(now.shape[1])
    )
    assert objective.loss(again)[0].item() - plain.loss(same)[0].item() == pytest.approx(3 * expected / 8, rel=1e-4)


def test_distillation_from_the_start_in_parts_has_the_gradient_of_the_whole(chain):
    gradients = []
    for chunk in (0, 3):
        objective = objective_of(chain, distill_start=2.0, chunk=chunk)
        objective.modules.eval()
        torch.manual_seed(1)
        with torch.no_grad():
            for parameter in objective.retriever.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
        for part in objective.draw(0):
            objective.loss(part)[0].backward()
        gradients.append([p.grad for p in objective.retriever.parameters() if p.grad is not None])
    assert all(torch.allclose(a, b, atol=1e-6, rtol=1e-4) for a, b in zip(*gradients, strict=True))


WORDS = ["river", "stone", "lamp", "cloud", "horse", "bread", "music", "winter", "garden", "letter", "island", "mirror"]


def word_objective(tmp_path, words, **options):
    """Every block has a word of its own, which each of its sentences says."""
    documents = {
        f"Page {n}": [[f"The {word} is old.", f"A {word} again.", f"Some {word} there."]]
        for n, word in enumerate(words)
    }
    blocks = make_blocks(tmp_path / "blocks", documents)
    retriever = fresh_retriever(blocks)
    for module in retriever.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return objective_of(None, blocks=blocks, retriever=retriever, batch_size=12, **options)


def losses_of(objective, tmp_path, steps=60):
    out = Writer(tmp_path, Origin("retriever", "ict-init", 1, {}, {}))
    train(objective, TrainSettings(steps=steps, lr=3e-3, warmup=5, optimizer="adamw"), out, "ict-init")
    return [json.loads(line)["loss"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]


def test_it_learns(tmp_path):
    losses = losses_of(word_objective(tmp_path, WORDS), tmp_path)
    assert np.mean(losses[-12:]) < 0.75 * np.mean(losses[:12])


@pytest.mark.parametrize("null_share", [0.0, 0.3])
def test_the_null_document_gets_its_weight_from_that_share_alone(tmp_path, null_share):
    """p(null|x) beside the other blocks, own ones withheld, after training."""
    objective = word_objective(tmp_path, WORDS, null_share=null_share)
    losses_of(objective, tmp_path, steps=100)
    chunk = objective.draw(0)[0]
    queries, blocks, pairs = chunk.queries, chunk.blocks, chunk.examples
    null = objective.collator.block([np.array([], int)], [np.array([], int)])
    objective.modules.eval()
    with torch.no_grad():
        choices = torch.cat([objective.retriever.embed_blocks(blocks), objective.retriever.embed_blocks(null)])
        score = objective.retriever.embed_queries(queries) @ choices.T
    score[torch.eye(len(pairs), len(choices)).bool()] = -1e30
    assert (score.softmax(1)[:, -1].mean() > 2 / len(pairs)) == (null_share > 0)


def test_the_stage_hands_the_null_share_on(chain, tmp_path):
    """From the first step on: another softmax, another loss."""
    small = {"blocks": chain.blocks, "bert": "scratch:L1-H32", "steps": 1, "batch_size": 8, "projection": 16}
    losses = [
        metrics_of(IctInit(**small, null_share=share).make(tmp_path / f"retriever{share}"))[0]["loss"]
        for share in (0.0, 0.9)
    ]
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_null_share_that_is_none_is_refused(chain, tmp_path, share):
    with pytest.raises(ConfigError, match="--null-share"):
        IctInit(blocks=chain.blocks, bert="scratch:L1-H32", steps=1, null_share=share).make(tmp_path / "retriever")


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
