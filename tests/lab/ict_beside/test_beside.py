"""Pre-training with the loss of the inverse cloze task, against both trainings on their own."""

from __future__ import annotations

import pytest
import torch

from realmctl.errors import ConfigError
from realmctl.lab.ict_beside.beside import Beside
from realmctl.training.objectives.pretrain import beside_ict
from stages.ict_init import IctInit
from tests.fixtures.chain import Stopped, make_index, metrics_of, pretrain, stop_at
from tests.fixtures.pretraining import objective_of
from tests.fixtures.retriever import make_retriever

ICT = {"ict_weight": 0.3, "ict_batch_size": 8, "distill_start": 2.0}


def backward(objective, step):
    """The loss of a step, and the gradients of all weights."""
    objective.modules.zero_grad()
    losses = []
    for part in objective.draw(step):
        loss, _ = objective.loss(part)
        loss.backward()
        losses.append(loss.detach())
    return sum(losses), {
        name: torch.zeros(()) if each.grad is None else each.grad.clone()
        for name, each in objective.modules.named_parameters()
    }


@pytest.mark.parametrize("micro_batch", [0, 3])
def test_loss_and_gradients_are_the_weighted_sum(chain, micro_batch):
    realm = objective_of(chain, micro_batch=micro_batch)
    both = beside_ict(realm, pretrain(chain, **ICT, micro_batch=micro_batch, precision="fp32"))
    assert isinstance(both, Beside)
    torch.manual_seed(0)
    with torch.no_grad():  # away from the start, where nothing is distilled
        for parameter in realm.retriever.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    loss, gradients = backward(both, 2)
    of_realm, of_ict = backward(realm, 2), backward(both.other, 2)
    assert torch.allclose(loss, of_realm[0] + 0.3 * of_ict[0], rtol=1e-6)
    for name, gradient in gradients.items():
        expected = of_realm[1][name] + 0.3 * of_ict[1].get(name, torch.zeros(()))
        assert torch.allclose(gradient, expected, rtol=1e-4, atol=1e-7), name
    assert any(torch.any(each != 0) for each in of_ict[1].values())


def test_its_first_step_is_that_of_both_stages(chain, tmp_path):
    retriever = make_retriever(tmp_path / "retriever", chain.blocks, dropout=0.0)
    parts = {"retriever": retriever, "index": make_index(tmp_path, chain.blocks, retriever), "dropout": 0.0}
    alone = metrics_of(pretrain(chain, **parts).make(tmp_path / "alone"))[0]
    ict = IctInit(blocks=chain.blocks, retriever=retriever, steps=1, batch_size=8).make(tmp_path / "ict")
    [of_ict] = metrics_of(ict)
    both = metrics_of(pretrain(chain, **parts, ict_weight=0.3, ict_batch_size=8).make(tmp_path / "both"))[0]
    assert (both["ict_loss"], both["ict_accuracy"]) == pytest.approx((of_ict["loss"], of_ict["accuracy"]), rel=1e-6)
    assert both["loss"] == pytest.approx(alone["loss"] + 0.3 * of_ict["loss"], rel=1e-6)
    assert both["retrieval_utility"] == alone["retrieval_utility"]


def test_a_run_that_was_stopped_ends_as_one_that_was_not(chain, tmp_path, monkeypatch):
    expected = pretrain(chain, **ICT).make(tmp_path / "expected")
    with monkeypatch.context() as patch:
        stop_at(patch, 4)
        with pytest.raises(Stopped):
            pretrain(chain, **ICT).make(tmp_path / "model")
    assert pretrain(chain, **ICT).make(tmp_path / "model").content == expected.content


def test_what_is_distilled_needs_the_batch_of_the_task(chain):
    with pytest.raises(ConfigError, match="--ict-weight"):
        pretrain(chain, distill_start=1.0).check()
