"""Hubs, change, overlap and drift, against sets, counters and loops; and what pre-training logs of them at a swap, by brute force."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.artifacts import open_artifact
from realmctl.retrieval.search.candidates import ABSENT
from realmctl.training.monitoring import candidate_watch
from realmctl.training.monitoring.candidate_watch import CandidateWatch, drift, overlap
from realmctl.training.monitoring.pretrain_watch import PretrainWatch
from realmctl.training.realm import RealmObjective
from realmctl.training.refresh.index_in_use import IndexInUse, IndexRenewal
from realmctl.training.refresh.kinds import Refresh
from stages.build_index import BuildIndex
from stages.embed import Embed
from tests.fixtures.pretraining import objective_of
from tests.fixtures.retriever import make_retriever

QUERIES = 10


@pytest.fixture(autouse=True, scope="module")
def few_queries():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidate_watch, "HUB_QUERIES", QUERIES)
        yield


def rows_of(draw, queries, blocks):
    """Distinct rows for each query, some of them none."""
    lists = [draw(st.permutations(range(8)))[:blocks] for _ in range(queries)]
    return np.array([[row if row else ABSENT for row in rows] for rows in lists], dtype=np.int64).reshape(-1, blocks)


@given(st.data())
def test_a_hub_is_what_most_of_the_last_queries_got(data):
    watch, seen = CandidateWatch(), []
    for _ in range(data.draw(st.integers(1, 5))):
        rows = rows_of(data.draw, data.draw(st.integers(1, 6)), 3)
        watch.add(rows)
        seen += [set(query) - {ABSENT} for query in rows.tolist()]
        again = CandidateWatch()
        again.restore(json.loads(json.dumps(watch.state())))
        counts = Counter(row for query in seen[-QUERIES:] for row in query)
        share = max(counts.values(), default=0) / QUERIES
        assert watch.hub_share() == again.hub_share() == ({"hub_share": share} if len(seen) >= QUERIES else {})


@given(st.data())
def test_change_is_what_is_gone(data):
    before, after = (rows_of(data.draw, 5, 3) for _ in range(2))
    watch = CandidateWatch()
    assert watch.changed(before) == {} and watch.changed(before) == {"candidates_changed": 0.0}
    sets = [(set(one) - {ABSENT}, set(other)) for one, other in zip(before.tolist(), after.tolist(), strict=True)]
    gone, there = sum(len(one - other) for one, other in sets), sum(len(one) for one, _ in sets)
    again = CandidateWatch()
    again.restore(json.loads(json.dumps(watch.state())))
    assert watch.changed(after) == again.changed(after) == {"candidates_changed": gone / max(1, there)}


@given(st.data())
def test_overlap_is_what_both_have(data):
    def rows():
        lists = [data.draw(st.permutations(range(7)))[:3] for _ in range(4)]
        return np.array([[row if row else ABSENT for row in each] for each in lists], dtype=np.int64)

    stale, fresh = rows(), rows()
    pairs = [(set(one) - {ABSENT}, set(other)) for one, other in zip(stale.tolist(), fresh.tolist(), strict=True)]
    assert overlap(stale, fresh) == sum(len(a & b) for a, b in pairs) / sum(len(a) for a, _ in pairs)
    assert overlap(stale, stale) == 1.0


def test_no_stale_candidate_is_no_loss():
    assert overlap(np.full((2, 3), ABSENT), np.zeros((2, 3), dtype=np.int64)) == 1.0


class OneSwap(Refresh):
    """Delivers one index after five steps."""

    def __init__(self, index):
        self.fresh = index

    def take(self, step, in_use):
        return (5, self.fresh) if step == 5 else None


def test_a_swap_logs_how_stale_the_index_was(chain, tmp_path):
    other = make_retriever(tmp_path / "retriever", chain.blocks, towers="separate", seed=3)
    embeddings = Embed(blocks=chain.blocks, retriever=other, precision="fp32").make(tmp_path / "embeddings")
    fresh = BuildIndex(embeddings=embeddings, type="exact").make(tmp_path / "index")
    objective: RealmObjective = objective_of(chain)
    objective.in_use = IndexInUse(chain.index, "cpu", OneSwap(open_artifact(fresh.path)))
    renewal, watch = IndexRenewal(objective.in_use, objective.retriever), PretrainWatch(objective)
    renewal.before_step(0)
    assert not {"index_overlap", "index_drift"} & watch.before_step(0).keys()  # nothing to compare yet
    renewal.before_step(5)
    logged = watch.before_step(5)
    vectors = [np.load(index.file("vectors.npy")).astype(np.float64) for index in (chain.index, fresh)]
    kept = found = 0
    for query, vector in zip(watch._watched, objective.vectors(watch._watched), strict=True):
        own = objective.queries.uid[query.sentence]
        stale, new = (best_blocks(each @ vector, objective.corpus.uid, own, 3) for each in vectors)
        kept, found = kept + len(stale & new), found + len(stale)
    assert 0 < kept < found
    assert logged["index_overlap"] == pytest.approx(kept / found)
    cosines = [float(a @ b) / math.sqrt(float(a @ a) * float(b @ b)) for a, b in zip(*vectors, strict=True)]
    assert logged["index_drift"] == pytest.approx(1 - sum(cosines) / len(cosines), abs=1e-5)


def best_blocks(scores, uids, own, count):
    """The rows of the best blocks, each text once and without the query's own."""
    found = {}
    for row in sorted(range(len(scores)), key=lambda row: (-scores[row], row)):
        if uids[row] != own:
            found.setdefault(uids[row], row)
    return set(list(found.values())[:count])


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_drift_is_one_minus_the_mean_cosine(count, seed):
    stale, fresh = np.random.default_rng(seed).normal(size=(2, count, 4)).astype(np.float32)
    cosines = [
        sum(a * b for a, b in zip(one, other, strict=True))
        / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))
        for one, other in zip(stale.tolist(), fresh.tolist(), strict=True)
    ]
    assert drift(stale, fresh) == pytest.approx(1 - sum(cosines) / count, abs=1e-6)
    assert drift(stale, 3 * stale) == pytest.approx(0, abs=1e-6)
    assert drift(stale, -stale) == pytest.approx(2, abs=1e-6)
