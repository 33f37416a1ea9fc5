"""The fine-tuning objective against loops, and what it leaves alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from realmctl.errors import ConfigError
from realmctl.models.retriever_settings import read_settings
from tests.fixtures.chain import FIRST, LAST, baseline, finetune, metrics_of, pretrain
from tests.fixtures.finetuning import QUESTIONS, block_scores, born, objective_of, span_scores


def brute_force(objective, numbers, *, with_retrieval_score=True):
    """Both losses of some questions, or the reader's alone."""
    corpus, options, total = objective.searcher.corpus, objective.settings, torch.zeros(())
    for number in numbers:
        score, beam = block_scores(objective, number)
        answers = objective.questions[number].answers
        good = [row for row in beam if any(answer in corpus.block(row).text for answer in answers)]
        if good and not options.freeze_retriever:
            total += score[beam].logsumexp(0) - score[good].logsumexp(0)
        everything, spans = span_scores(objective, number, with_retrieval_score=with_retrieval_score)
        wanted = [ids.tolist() for ids in objective.searcher.tokens(answers)]
        correct = torch.tensor([span in wanted for span in spans])
        if correct.any():
            total += everything.logsumexp(0) - everything[correct].logsumexp(0)
    return total / len(numbers)


@pytest.mark.parametrize(("micro_batch", "freeze"), [(0, False), (1, False), (2, False), (0, True), (1, True)])
def test_the_loss_is_orqas(chain, micro_batch, freeze):
    objective = objective_of(chain, QUESTIONS, micro_batch=micro_batch, freeze=freeze)
    parts = objective.draw(0)
    objective.modules.eval()
    losses = [objective.loss(part)[0] for part in parts]
    total = sum(loss for loss in losses if loss is not None)
    expected = brute_force(objective, objective.order.batch(0).tolist())
    assert expected > 0.1
    tolerance = 1e-4 * expected
    assert abs(total - expected) < tolerance
    without = brute_force(objective, objective.order.batch(0).tolist(), with_retrieval_score=False)
    assert abs(without - expected) > 5 * tolerance  # the reader's loss contains the score of the block


def test_the_retriever_learns_from_both_losses_and_the_blocks_stand_still(chain):
    objective = objective_of(chain, QUESTIONS)
    before = np.array(objective.searcher.index.vectors(np.arange(5)))
    loss, _ = objective.loss(objective.draw(0)[0])
    loss.backward()
    assert objective.modules["retriever"].block_tower is None
    for name, parameter in objective.modules.named_parameters():
        if "position_embeddings" not in name:
            assert parameter.grad is not None, name
    assert np.array_equal(before, objective.searcher.index.vectors(np.arange(5)))


def test_questions_without_an_answer_in_reach_teach_nothing(chain):
    objective = objective_of(chain, [born("Ada Lorn", "Nowhere at all"), born("Ben Mott", "Atlantis")], batch_size=2)
    loss, sums = objective.loss(objective.draw(0)[0])
    assert loss is None
    assert sums["answer_in_beam"] == (0.0, 2.0) and sums["span_exact_match"] == (0.0, 2.0)


def test_a_frozen_retriever_is_left_alone_and_draws_no_dropout(chain):
    objective = objective_of(chain, QUESTIONS, freeze=True)
    objective.modules.train()
    [part] = objective.draw(0)
    loss, sums = objective.loss(part)
    loss.backward()
    assert sums["answer_in_reader"][0] > 0
    learner, reader = objective.modules["retriever"], objective.modules["reader"]
    assert not learner.training and all(parameter.grad is None for parameter in learner.parameters())
    assert reader.training and any(parameter.grad is not None for parameter in reader.parameters())


def test_what_only_a_frozen_retriever_could_learn_from_teaches_nothing(chain):
    """The answer is in the beam and too far down to be read: a loss without a gradient would end the run."""
    low = next(
        question
        for question in (born(name, name) for name in ("Velford", "Harrow", "Ashby", "Milton"))
        if (drawn := objective_of(chain, [question], batch_size=1, beam=40).draw(0)[0]).correct_QK.any()
        and not any(drawn.spans)
    )
    learning, frozen = (objective_of(chain, [low], batch_size=1, beam=40, freeze=f) for f in (False, True))
    assert learning.loss(learning.draw(0)[0])[0] is not None
    assert frozen.loss(frozen.draw(0)[0])[0] is None


def test_answers_that_are_regular_expressions_teach_both(chain):
    plain = objective_of(chain, [born("Ada Lorn", "Velford", "Harrow")], batch_size=1, beam=40)
    regex = objective_of(
        chain, [born("Ada Lorn", r"vel[a-z]+d", r"\bHarrow\b", "(", is_regex=True)], batch_size=1, beam=40
    )
    [one], [other] = plain.draw(0), regex.draw(0)
    assert torch.equal(one.correct_QK, other.correct_QK) and one.correct_QK.any() and not one.correct_QK.all()
    rows = np.flatnonzero(one.correct_QK[0]).tolist()
    for row in one.rows_QK[0, rows].tolist():
        assert plain._answers_in(0, row, 99) == regex._answers_in(0, row, 99) != []


@pytest.mark.parametrize(("answer", "is_held"), [("Harro", True), ("harrow", False)])
def test_an_answer_is_held_as_raw_text(chain, answer, is_held):
    """ "Harro" is in "Harrow", though it is no word of a block; upper and lower case count."""
    objective = objective_of(chain, [born("Ada Lorn", answer)], batch_size=1, beam=40)
    assert bool(objective.draw(0)[0].correct_QK.any()) == is_held


def test_an_answer_cut_off_by_the_readers_length_is_not_wanted(chain):
    objective = objective_of(chain, QUESTIONS)
    row = next(row for row in range(40) if "Velford" in objective.searcher.corpus.block(row).text)
    whole = objective._answers_in(0, row, 99)
    assert whole and objective._answers_in(0, row, whole[0][0]) == []


def test_a_step_leaves_dropout_on(chain):
    objective = objective_of(chain, QUESTIONS)
    objective.modules.train()
    objective.draw(0)
    assert all(module.training for module in objective.modules.modules())


def test_an_index_smaller_than_the_beam(chain):
    objective = objective_of(chain, QUESTIONS, beam=5000)
    [part] = objective.draw(0)
    assert part.rows_QK.shape == (3, 40)


def test_the_stage_freezes_the_retriever_where_asked(chain, tmp_path):
    model = pretrain(chain, steps=2).make(tmp_path / "model")
    frozen = finetune(chain, model, freeze_retriever=True).make(tmp_path / "frozen")
    learning = finetune(chain, model).make(tmp_path / "learning")
    start = load_file(model.part("retriever").path / "block" / "model.safetensors")
    for made, stays in ((frozen, True), (learning, False)):
        weights = load_file(made.part("retriever").path / "query" / "model.safetensors")
        assert stays == all(torch.equal(tensor, start[name]) for name, tensor in weights.items())
    assert frozen.recipe != learning.recipe
    with pytest.raises(ConfigError, match="no retriever"):
        baseline(chain, "none", freeze_retriever=True).check()


def test_the_stage_hard_links_the_index_and_learns(chain, tmp_path):
    model = pretrain(chain, steps=2).make(tmp_path / "model")
    made = finetune(chain, model, steps=30, optimizer="adamw").make(tmp_path / "qa-model")
    lines = metrics_of(made)
    assert np.mean([line["loss"] for line in lines[-8:]]) < np.mean([line["loss"] for line in lines[:8]])
    assert made.part("index").content == model.part("index").content
    assert made.part("index").file("vectors.npy").samefile(model.part("index").file("vectors.npy"))
    described = json.loads(made.part("retriever").file("retriever.json").read_text())
    assert described["towers"] == "query-only"
    assert read_settings(made.part("retriever").path).block_retriever == model.part("retriever").content
    assert made.metrics["questions"] == len(FIRST) * len(LAST)
