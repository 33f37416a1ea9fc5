"""Drift against loops, and the sample that it is measured on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.retrieval.search.drift import drift, evenly_spaced


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


def test_the_sample_covers_the_corpus():
    assert evenly_spaced(3, 256).tolist() == [0, 1, 2]
    rows = evenly_spaced(10_001, 256)
    assert len(set(rows.tolist())) == 256 and rows[0] == 0 and rows[-1] == 10_000
