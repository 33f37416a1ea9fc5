"""`--objective useful-spans` beside a choice made by hand, query by query."""

from __future__ import annotations

import json

import pytest
import torch

from realmctl.lab.useful_spans import POOL, UsefulSpans
from realmctl.spans.query import Query
from realmctl.training.data.draws import Stream, generator
from realmctl.training.realm import RealmObjective
from tests.fixtures.chain import Chain, pretrain
from tests.fixtures.pretraining import objective_of


def pool_of(objective: RealmObjective, step: int) -> list[Query]:
    """The queries among which a step chooses, batch by batch."""
    rng = generator(objective.settings.seed, Stream.QUERY_MASKS, step)
    batches = [objective.order.batch(POOL * step + number) for number in range(POOL)]
    return [query for batch in batches for query in objective.masked(batch, rng)]


def helped(objective: RealmObjective, query: Query) -> float:
    """The best of log p(y|z,x) - log p(y|null,x) over the blocks of one query, in nats a wordpiece."""
    rows_1N = objective.candidates_of([query], objective.vectors([query]))
    with torch.no_grad():
        log_prob_1NM, hidden_1M = objective.reader.read(objective.batch([query]), rows_1N)
    each_N = log_prob_1NM[0][:, hidden_1M[0]].sum(1)
    return float((each_N[1:][torch.from_numpy(rows_1N[0, 1:] >= 0)] - each_N[0]).max()) / int(hidden_1M.sum())


@pytest.mark.parametrize("masking", ["salient", "random-uniform"])
def test_the_half_that_blocks_help_most_is_trained_on(chain: Chain, masking):
    objective, plain = (objective_of(chain, kind=kind, masking=masking) for kind in (UsefulSpans, RealmObjective))
    for step in (0, 3):
        pool = pool_of(plain, step)
        best = sorted((helped(plain, query) for query in pool), reverse=True)[: len(pool) // POOL]
        [part] = objective.draw(step)
        texts = [query.tokens.tolist() for query in pool]
        assert all(query.tokens.tolist() in texts for query in part.asked.queries)
        chosen = [helped(plain, query) for query in part.asked.queries]
        assert sorted(chosen, reverse=True) == pytest.approx(best, abs=1e-5)
        assert part.normaliser == sum(query.hidden for query in part.asked.queries)
        assert not objective.modules.training  # as it was


def test_micro_batches_choose_alike_and_gradients_are_none(chain: Chain):
    whole, parted = (objective_of(chain, kind=UsefulSpans, micro_batch=size) for size in (0, 2))
    [part] = whole.draw(1)
    parts = parted.draw(1)
    assert [len(each.asked.queries) for each in parts] == [2, 2, 1]
    drawn = [query.tokens.tolist() for each in parts for query in each.asked.queries]
    assert drawn == [query.tokens.tolist() for query in part.asked.queries]
    assert all(parameter.grad is None for parameter in parted.modules.parameters())
    with torch.no_grad():
        losses = [
            float(sum(objective.loss(each)[0] for each in found))
            for objective, found in ((whole, [part]), (parted, parts))
        ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_a_training_has_more_utility_than_realms(chain: Chain, tmp_path):
    settings = {"steps": 4, "batch_size": 8, "dropout": 0.0, "lr": 1e-6, "refresh": "never"}
    made = {
        name: pretrain(chain, objective=name, **settings).make(tmp_path / name) for name in ("realm", "useful-spans")
    }
    assert made["useful-spans"].settings["objective"] == "useful-spans"
    lines = {
        name: [json.loads(line)["retrieval_utility"] for line in model.file("metrics.jsonl").read_text().splitlines()]
        for name, model in made.items()
    }
    assert sum(lines["useful-spans"]) > sum(lines["realm"])
