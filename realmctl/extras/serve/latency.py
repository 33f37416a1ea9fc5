"""Counts of requests and their latency: a window of the latest requests of each kind."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np

from realmctl.extras.serve.messages import Latency

WINDOW = 1000


class Latencies:
    """Seconds of the latest requests by kind. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._latest: dict[str, deque[float]] = {}

    def add(self, kind: str, seconds: float) -> None:
        """Count a request."""
        with self._lock:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._latest.setdefault(kind, deque(maxlen=WINDOW)).append(seconds)

    def median(self, kind: str) -> float | None:
        """Median seconds of the latest requests of a kind; None before the first."""
        with self._lock:
            return float(np.median(self._latest[kind])) if kind in self._latest else None

    def summary(self) -> dict[str, Latency]:
        """Number, median and 95th percentile for each kind."""
        with self._lock:
            kept = {kind: (self._counts[kind], list(seconds)) for kind, seconds in self._latest.items()}
        found = {}
        for kind, (count, seconds) in kept.items():
            p50, p95 = (round(1000 * float(value), 3) for value in np.percentile(seconds, [50, 95]))
            found[kind] = Latency(requests=count, p50_ms=p50, p95_ms=p95)
        return found
