"""Hubs and change, against sets and counters."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.retrieval.search.candidates import ABSENT
from realmctl.training.monitoring import candidate_watch
from realmctl.training.monitoring.candidate_watch import CandidateWatch

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
