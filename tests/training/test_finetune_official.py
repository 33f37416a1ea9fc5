"""What fine-tuning does on demand: the paper's objective, and the official code's steps that teach nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from realmctl.artifacts import open_artifact
from realmctl.errors import ConfigError
from realmctl.models.weights import load_tensors
from realmctl.retrieval.answering.qa_model import QaModel
from tests.fixtures.chain import baseline, finetune, metrics_of
from tests.fixtures.finetuning import QUESTIONS, born, objective_of


def with_options(tuning, **options):
    tuning.settings = replace(tuning.settings, **options)
    return tuning


def brute_force(plain, part):
    """-log sum_z p(z|x) sum_s p(s|z,x) over the spans that match, in probabilities; `plain` is the objective of ORQA."""
    span_QRS, correct_QRS = plain._spans(part, torch.device("cpu"))
    score_QK = plain.searcher.scores(part.questions, part.rows_QK).double()
    total = torch.zeros((), dtype=torch.double)
    for scores_RS, correct_RS, score_K in zip(span_QRS.double(), correct_QRS, score_QK, strict=True):
        weight_R = score_K[: len(scores_RS)].exp()
        likelihood = torch.zeros((), dtype=torch.double)
        for scores_S, correct_S, weight in zip(scores_RS, correct_RS, weight_R, strict=True):
            likelihood += (
                weight / weight_R.sum() * scores_S[correct_S].exp().sum() / scores_S[scores_S > -1e30].exp().sum()
            )
        total -= likelihood.log() if likelihood > 0 else 0
    return total / part.questions_in_batch


@pytest.mark.parametrize("micro_batch", [0, 1])
def test_the_papers_objective_is_the_likelihood_summed_over_the_blocks(chain, micro_batch):
    plain = objective_of(chain, QUESTIONS)
    objective = with_options(objective_of(chain, QUESTIONS, micro_batch=micro_batch), objective="paper")
    parts = objective.draw(0)
    losses = [objective.loss(part)[0] for part in parts]
    expected = sum(brute_force(plain, part) for part in parts)
    assert expected > 0.1
    total = sum(loss for loss in losses if loss is not None)
    assert total.item() == pytest.approx(expected.item(), rel=1e-5)
    assert abs(sum(plain.loss(part)[0] or 0 for part in parts) - expected) > 0.1


def test_the_papers_objective_teaches_retriever_and_reader(chain):
    objective = with_options(objective_of(chain, QUESTIONS), objective="paper")
    objective.loss(objective.draw(0)[0])[0].backward()
    for name, parameter in objective.modules.named_parameters():
        if "position_embeddings" not in name:
            assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name


def test_a_model_of_the_papers_objective_answers_by_it(chain, tmp_path):
    """p(z|x) p(s|z,x) ranks the answers; their scores differ from log-probabilities by one constant a question."""
    made = finetune(chain, objective="paper", steps=2).make(tmp_path / "qa")
    answerer = QaModel.open(made, blocks=chain.blocks, device="cpu", precision="fp32").answerer
    tokens = answerer.tokens(["Where was Ada Lorn born?"])
    hits = answerer.searcher.search(tokens, 3)
    answers = answerer.answer(tokens, hits, 1)[0]
    assert answerer.by_block
    best = -torch.inf
    for hit, spans in zip(hits[0], answerer._read([(tokens[0], hit) for hit in hits[0]], 10**6), strict=True):
        assert sum(torch.tensor([score - hit.score for score, *_ in spans]).exp()) == pytest.approx(1, abs=1e-4)
        best = max(best, *(score for score, *_ in spans))
    assert answers[0].score == best


def test_without_blocks_there_is_no_such_choice(chain):
    for settings in ({"objective": "paper"}, {"official": "empty-steps"}):
        with pytest.raises(ConfigError, match="--retrieval none"):
            baseline(chain, "none", **settings).check()


def test_steps_that_teach_nothing_decay_the_weights_as_officially(chain, tmp_path):
    unanswerable = tmp_path / "questions.jsonl"
    unanswerable.write_text(json.dumps({"question": "Where was Ada Lorn born?", "answer": ["Atlantis"]}) + "\n")
    plain, moved = (
        replace(finetune(chain, official=official, batch_size=1), questions=unanswerable).make(tmp_path / "qa")
        for official in ((), ("empty-steps",))
    )
    rates = [line["lr"] for line in metrics_of(moved)]
    assert [line["lr"] for line in metrics_of(plain)] == rates and [line["loss"] for line in metrics_of(moved)] == [
        0.0
    ] * 4
    before, after = (
        load_tensors(open_artifact(made.path / "reader").file("span_head.safetensors")) for made in (plain, moved)
    )
    kept = torch.tensor([1 - 0.01 * rate for rate in rates]).prod()
    assert torch.allclose(after["dense.weight"], before["dense.weight"] * kept, rtol=1e-6) and kept < 1
    assert torch.equal(after["norm.weight"], before["norm.weight"])  # norms do not decay


def test_a_loss_of_nothing_has_gradients_of_nothing(chain):
    objective = objective_of(chain, [born("Ada Lorn", "Atlantis")], batch_size=1)
    with_options(objective, official=("empty-steps",))
    loss, _ = objective.loss(objective.draw(0)[0])
    loss.backward()
    assert loss == 0 and all(p.grad is None or not p.grad.any() for p in objective.modules.parameters())
