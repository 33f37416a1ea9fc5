"""Counts and latencies, compared with numpy over the latest requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from realmctl.extras.serve.latency import WINDOW, Latencies


def test_percentiles_are_of_the_latest_requests():
    seconds = np.random.default_rng(0).exponential(size=WINDOW + 500)
    latencies = Latencies()
    for one in seconds:
        latencies.add("ask", float(one))
    found = latencies.summary()["ask"]
    p50, p95 = np.percentile(seconds[-WINDOW:], [50, 95]) * 1000
    assert found.requests == WINDOW + 500
    assert (found.p50_ms, found.p95_ms) == (pytest.approx(p50, abs=1e-3), pytest.approx(p95, abs=1e-3))
    assert latencies.median("ask") == pytest.approx(p50 / 1000)


def test_kinds_are_counted_apart():
    latencies = Latencies()
    assert latencies.summary() == {} and latencies.median("ask") is None
    latencies.add("ask", 1.0)
    latencies.add("fill", 3.0)
    assert {kind: (one.requests, one.p50_ms) for kind, one in latencies.summary().items()} == {
        "ask": (1, 1000.0),
        "fill": (1, 3000.0),
    }


def test_no_count_is_lost_between_threads():
    latencies = Latencies()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            pool.submit(lambda: [latencies.add("ask", 0.1) for _ in range(500)])
    assert latencies.summary()["ask"].requests == 4000
