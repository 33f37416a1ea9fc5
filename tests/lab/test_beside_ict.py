"""`--objective beside-ict`: its loss and its gradient are those of both tasks, added."""

from __future__ import annotations

import json
import math

import pytest
import torch

from realmctl.lab.beside_ict import PAIRS, BesideIct
from realmctl.models.retriever import Retriever
from realmctl.training.evaluation.cloze_recall import held_out
from realmctl.training.ict import InverseClozeObjective
from realmctl.training.realm import RealmObjective
from realmctl.training.refresh.index_in_use import IndexInUse
from realmctl.training.settings.retriever import IctSettings
from tests.fixtures.chain import Chain, pretrain
from tests.fixtures.pretraining import objective_of


def losses_and_gradient(objective, step: int, *others) -> tuple[list[float], torch.Tensor]:
    """The loss of each task, and the gradient of the retriever of the first objective, all losses added."""
    losses = [sum(each.loss(part)[0] for part in each.draw(step)) for each in (objective, *others)]
    objective.modules.zero_grad()
    sum(losses).backward()
    retriever = objective.modules["retriever"]
    return [float(loss.detach()) for loss in losses], torch.cat(
        [each.grad.flatten() for each in retriever.parameters() if each.grad is not None]
    )


@pytest.mark.parametrize("micro_batch", [0, 2])
def test_losses_and_gradients_are_those_of_both(chain: Chain, micro_batch):
    both, realm = (objective_of(chain, kind=kind, micro_batch=micro_batch) for kind in (BesideIct, RealmObjective))
    pairs = IctSettings(blocks=chain.blocks, batch_size=PAIRS * realm.settings.batch_size, seed=realm.settings.seed)
    ict = InverseClozeObjective(realm.retriever, realm.corpus, realm.collator, pairs)
    for step in (0, 2):
        [together], gradient = losses_and_gradient(both, step)
        apart, expected = losses_and_gradient(realm, step, ict)
        assert all(loss > 0 for loss in apart) and together == pytest.approx(sum(apart), rel=1e-5)
        assert torch.allclose(gradient, expected, atol=1e-6)


def test_the_other_task_is_logged(chain: Chain, tmp_path):
    model = pretrain(chain, steps=4, dropout=0.0, objective="beside-ict").make(tmp_path / "model")
    lines = [json.loads(line) for line in model.file("metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "loss" in line]
    assert len(steps) == 4 and all(0 <= line["ict_accuracy"] <= 1 for line in steps)


def test_sentences_that_measure_are_no_pairs(chain: Chain):
    settings = pretrain(chain, cloze_recall=10)
    objective = BesideIct(settings, Retriever.load(chain.retriever.path), IndexInUse(chain.index, "cpu"))
    held = held_out(objective.corpus, 10, settings.seed)
    assert held and objective.ict.held_out == held
    assert objective.ict.order.batch_size == PAIRS * settings.batch_size
    realm = objective_of(chain)
    assert objective.chance == pytest.approx(realm.chance + math.log(objective.ict.order.batch_size))


def test_where_realms_chance_is_not_known_the_sum_is_not(chain: Chain):
    assert objective_of(chain, marginal="sequence", kind=BesideIct).chance == 0
