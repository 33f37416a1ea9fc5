"""What pre-training does as the official code does, on demand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from realmctl.models.retriever import Retriever
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.training.data.order import ShardedDataOrder, span_order
from realmctl.training.refresh.index_in_use import IndexInUse
from tests.fixtures.chain import Stopped, metrics_of, pretrain, stop_at
from tests.fixtures.pretraining import objective_of
from tests.fixtures.refresh import nudge

HABITS = ("span-draws", "shards", "double-candidates", "snapshot-queries")


def test_a_round_is_four_shards_each_block_once():
    order = ShardedDataOrder(20_003, 16, seed=3)  # shards of 5 or 4
    assert order.count == 4 * 4
    rounds = [order.batch(step) for step in range(200)]
    for taken in rounds:
        assert len(set(taken.tolist())) == 16
        shard = np.where(taken < 15, taken // 5, 3 + (taken - 15) // 4)
        assert len(set(shard.tolist())) <= 4
    assert len({int(shard) for taken in rounds for shard in taken // 5}) > 500
    assert [order.batch(7).tolist()] == [ShardedDataOrder(20_003, 16, seed=3).batch(7).tolist()]


@pytest.mark.parametrize("count", [1, 3, 4, 7, 5000, 5001])
def test_few_examples_are_shards_of_one(count):
    order = ShardedDataOrder(count, 5, seed=0)
    assert order.count == min(4, count) and order.batch(3).max() < count


def test_shards_are_of_spans_or_of_blocks(chain):
    queries = TaggedQueries(chain.spans)
    spans = span_order(queries, 3, 5, ("shards",))
    expected = ShardedDataOrder(len(queries.spans), 3, 5)
    assert [spans.batch(step).tolist() for step in range(9)] == [expected.batch(step).tolist() for step in range(9)]
    uid = queries.uid[queries.spans[:, 0]]
    blocks = ShardedDataOrder(len(set(uid.tolist())), 3, 5)
    drawn = span_order(queries, 3, 5, ("span-draws", "shards"))
    first = list(dict.fromkeys(uid.tolist()))
    for step in range(9):
        assert uid[drawn.batch(step)].tolist() == [first[block] for block in blocks.batch(step)]


def test_each_block_is_as_likely_and_so_is_each_of_its_spans(chain):
    queries = TaggedQueries(chain.spans)
    order = span_order(queries, 10, 0, ("span-draws",))
    uid = queries.uid[queries.spans[:, 0]].tolist()
    blocks = len(set(uid))
    counts = Counter(span for step in range(400) for span in order.batch(step).tolist())
    visits = Counter()
    for span, count in counts.items():
        visits[uid[span]] += count
    assert set(counts) == set(range(len(uid))) and set(visits.values()) == {4000 // blocks}
    for span, count in counts.items():
        expected = visits[uid[span]] / uid.count(uid[span])
        assert abs(count - expected) < 5 * expected**0.5


def test_queries_with_copies_among_their_hits_leave_their_batch(chain):
    objective = objective_of(chain)
    objective.corpus.uid = np.array(objective.corpus.uid)
    [whole] = objective.draw(0)
    twin = int(whole.rows_BN[0, 1])
    others = np.setdiff1d(np.arange(len(objective.corpus)), whole.rows_BN)
    objective.settings = replace(objective.settings, official=("double-candidates",))
    objective.corpus.uid[others] = objective.corpus.uid[others[0]]  # far from some queries, and near others
    objective.corpus.uid[int(whole.rows_BN[0, 2])] = objective.corpus.uid[twin]
    vectors = objective.in_use.index.vectors(np.arange(len(objective.corpus)))
    best = np.argsort(-(objective.vectors(whole.asked.queries) @ np.array(vectors).T), 1)[:, :4]
    stays = [len({int(objective.corpus.uid[row]) for row in rows}) == 4 for rows in best]
    parts = objective.draw(0)
    kept = [query for query, stay in zip(whole.asked.queries, stays, strict=True) if stay]
    assert not all(stays)
    assert [query.sentence for part in parts for query in part.asked.queries] == [query.sentence for query in kept]
    objective.corpus.uid[:] = 7
    assert objective.draw(0) == []


def test_queries_are_searched_with_the_encoder_of_the_index_where_there_is_one(chain, retriever):
    objective = objective_of(chain)
    [part] = objective.draw(0)
    live = objective.vectors(part.asked.queries)
    torch.nn.init.normal_(retriever.query_tower.projection.weight, generator=torch.Generator().manual_seed(0))
    objective.in_use.encoder = retriever.train()
    with torch.no_grad():
        expected = retriever.eval().embed_queries(part.asked.packed).numpy()
    retriever.train()
    assert np.allclose(objective.vectors(part.asked.queries), expected, atol=1e-6) and retriever.training
    assert not np.allclose(live, expected, atol=1e-3)


def test_the_encoder_that_searches_is_the_indexs(chain, started, retriever):
    current = IndexInUse(chain.index, "cpu", started("inline", snapshot_queries=True), searcher=chain.retriever)
    weights = []
    for step in range(6):
        current.renew(step, retriever)
        weights.append(current.encoder.query_tower.projection.weight.clone())
        nudge(retriever)
    first = Retriever.load(chain.retriever.path).query_tower.projection.weight
    expected = [first + 0.01 * moved for moved in (0, 0, 2, 2, 4, 4)]
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(weights, expected, strict=True))


def test_a_snapshot_whose_index_may_yet_come_is_kept(started, live, retriever, monkeypatch):
    trainer = started("background", snapshot_queries=True)
    monkeypatch.setattr(trainer, "checkpointed", lambda: {2})
    trainer.begin(0, 0)
    for step in (2, 4, 6, 8):
        trainer.offer(step, 0, retriever)
    assert live.snapshots.steps() == [2, 4, 6, 8]
    trainer.offer(10, 6, retriever)
    trainer.offer(12, 6, retriever)
    assert live.snapshots.steps() == [2, 6, 8, 10, 12]


def test_a_run_with_all_of_it_goes_on_after_a_stop_as_if_there_was_none(chain, tmp_path, monkeypatch):
    whole = pretrain(chain, official=HABITS).make(tmp_path / "whole")
    assert whole.content != pretrain(chain).make(chain.folder / "whole").content
    for step in (3, 5):
        with monkeypatch.context() as patch:
            stop_at(patch, step)
            with pytest.raises(Stopped):
                pretrain(chain, official=HABITS).make(tmp_path / "model")
    model = pretrain(chain, official=",".join(reversed(HABITS))).make(tmp_path / "model")
    assert model.content == whole.content and len(metrics_of(model)) == 6
