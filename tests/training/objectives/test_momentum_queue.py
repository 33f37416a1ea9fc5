"""Negatives of earlier steps, and the copy that embeds them, against a step-by-step account."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.objectives.ict import CroppingObjective
from realmctl.training.objectives.momentum_queue import MomentumQueue
from realmctl.training.settings.retriever import IctSettings
from stages.ict_init import IctInit
from tests.fixtures.chain import Chain, metrics_of
from tests.fixtures.retriever import fresh_retriever


def objective_of(chain: Chain, **more) -> CroppingObjective:
    settings = IctSettings(blocks=chain.blocks, encoder=None, batch_size=6, pairs="crops", **more)
    collator = Collator.of(Tokenizer.load(chain.blocks.path))
    objective = CroppingObjective(Retriever.load(chain.retriever.path), Corpus(chain.blocks), collator, settings)
    objective.modules.eval()
    return objective


def changed(retriever: Retriever, step: int) -> None:
    """What an optimizer might do."""
    torch.manual_seed(step)
    with torch.no_grad():
        for parameter in retriever.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))


def test_each_query_sees_the_blocks_of_the_last_steps_by_the_copy_of_their_time(chain: Chain) -> None:
    """Three steps with room for 10 vectors: the loss is a softmax over 6 blocks and the last 10 keys; the copy is a moving average."""
    objective = objective_of(chain, queue=10, momentum=0.7)
    weights = [parameter.detach().clone() for parameter in objective.retriever.parameters()]
    average, keys = [weight.clone() for weight in weights], []
    for step in range(3):
        [part] = objective.draw(step)
        loss, _ = objective.loss(part)
        with torch.no_grad():
            copy = Retriever.load(chain.retriever.path)
            for parameter, mean in zip(copy.parameters(), average, strict=True):
                parameter.copy_(mean)
            own = copy.embed_blocks(part.blocks)
            choices = torch.cat([own, *keys[-10:]]) if keys else own
            score = objective.retriever.embed_queries(part.queries) @ choices.T
        assert float(loss.detach()) == pytest.approx(float(F.cross_entropy(score, torch.arange(6))), rel=1e-5)
        assert score.shape[1] == (6, 12, 16)[step]
        loss.backward()
        assert all(parameter.grad is None for parameter in objective.queue.retriever.parameters())
        changed(objective.retriever, step)
        objective.after_step({})
        average = [
            0.7 * mean + 0.3 * parameter.detach()
            for mean, parameter in zip(average, objective.retriever.parameters(), strict=True)
        ]
        keys += [row[None] for row in own]


def test_blocks_get_no_gradient_and_parts_have_that_of_the_whole(chain: Chain) -> None:
    gradients = []
    for micro_batch in (0, 4):
        objective = objective_of(chain, queue=8, micro_batch=micro_batch)
        objective.queue.advance(
            objective.retriever, torch.randn(8, 8, generator=torch.Generator().manual_seed(1)), torch.arange(8)
        )
        changed(objective.retriever, 0)
        for part in objective.draw(0):
            objective.loss(part)[0].backward()
        gradients.append([p.grad for p in objective.retriever.parameters() if p.grad is not None])
    assert all(torch.allclose(a, b, atol=1e-6, rtol=1e-4) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize("size", [3, 5, 8])
def test_the_oldest_leave_first(chain: Chain, size: int) -> None:
    retriever = Retriever.load(chain.retriever.path)
    queue, rows = MomentumQueue(retriever, size, 0.5), torch.arange(16.0)[:, None].expand(16, 8)
    for first in range(0, 16, 4):
        queue.advance(retriever, rows[first : first + 4], torch.arange(first, first + 4))
        expected = list(range(max(0, first + 4 - size), first + 4))
        assert sorted(queue.vectors()[:, 0].tolist()) == expected
        assert queue.names().tolist() == queue.vectors()[:, 0].tolist()


def test_a_run_goes_on_with_its_queue(chain: Chain, tmp_path) -> None:
    """The queue and the copy are in the checkpoint's modules; what cannot work together is refused."""
    small = {"blocks": chain.blocks, "bert": "scratch:L1-H16", "batch_size": 4, "projection": 8, "precision": "fp32"}
    made = IctInit(**small, steps=3, queue=6, momentum=0.9).make(tmp_path / "retriever")
    losses = [line["loss"] for line in metrics_of(made)]
    plain = [line["loss"] for line in metrics_of(IctInit(**small, steps=3).make(tmp_path / "plain"))]
    assert losses[0] == pytest.approx(plain[0], rel=1e-5) and losses[1] > plain[1]  # the first step has an empty queue
    assert {"queue.vector_ND", "queue.pushed"} <= objective_of(chain, queue=4).modules.state_dict().keys()
    with pytest.raises(ConfigError, match="--distill-start"):
        objective_of(chain, queue=4, distill_start=1.0)
    with pytest.raises(ConfigError, match="--queue"):
        MomentumQueue(fresh_retriever(chain.blocks, towers="separate"), 4, 0.9)
