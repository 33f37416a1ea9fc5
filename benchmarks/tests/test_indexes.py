"""The benchmark of types of index: what it measures beside brute force, and its page."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
import torch

from realmctl import log
from realmctl.index.recall import RecallSample
from tests.fixtures.index import brute_force

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch):
    """The module. What it changes of this process is put back."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("__init__", "measure"):
        monkeypatch.setattr(RecallSample, name, getattr(RecallSample, name))
    threads = torch.get_num_threads()
    yield importlib.import_module("indexes")
    torch.set_num_threads(threads)
    log.set_quiet(False)


def test_a_type_is_measured_beside_what_brute_force_finds(bench, tmp_path, monkeypatch):
    bench.prepare(tmp_path, 1000)
    vectors = np.load(tmp_path / "build/vectors.npy")
    queries, true = np.load(tmp_path / "queries.npy"), np.load(tmp_path / "true.npy")
    assert (true == brute_force(vectors, queries, 100)[1]).mean() > 0.999  # sums are rounded in another order
    monkeypatch.setattr(bench, "alone", lambda work, *given: work(*given))
    parts = {
        part: work(tmp_path, "int8", 1000)
        for part, work in (
            ("build", bench.measure_build),
            ("search", bench.measure_search),
            ("refresh", bench.measure_refresh),
        )
    }
    assert parts["search"]["recall@8"] > 0.99 and parts["build"]["recall"] > 0.99
    assert 0 < parts["build"]["gate_s"] <= parts["build"]["cpu_s"] + 0.1
    assert parts["build"]["vectors_mib"] == 0.5 and parts["build"]["files_mib"] == 0.1
    moved = np.abs(np.load(tmp_path / "refresh/vectors.npy") - vectors)
    assert 0 < moved.mean() < 0.1
    measured = [
        bench.Measured(1000, "int8", part, found, "a machine", 0.5, "2030-01-31") for part, found in parts.items()
    ]
    [line] = [line for line in bench.page_of(measured).splitlines() if line.startswith("| 1,000 |")]
    assert bench.NOT_MEASURED not in line and bench.NOT_MEASURED in bench.page_of(measured[:1])


def test_a_measurement_replaces_the_one_before_and_the_page_follows(bench, tmp_path):
    results, page = tmp_path / "indexes.json", tmp_path / "indexes.md"
    for seconds in (1.5, 2.5):
        found = {"cpu_s": seconds, "gate_s": 0.5, "own_mib": 1, "peak_mib": 2, "files_mib": 3}
        bench.keep(bench.Measured(1000, "hnsw", "build", found, "a machine", 3.0, "2030-01-31"), results, page)
    [kept] = bench.read(results)
    assert (
        kept.found["cpu_s"] == 2.5
        and "| 2.5 (0.5) |" in page.read_text("utf-8")
        and "load average" in page.read_text("utf-8")
    )


def test_what_holds_compares_each_type_with_exact_search(bench, tmp_path):
    def search(rows, kind, milliseconds, recall):
        found = {"one@8_ms": milliseconds, "batch@8_ms": 0.5, "recall@8": recall, "peak_mib": rows / 1000}
        found |= {"one@100_ms": 1.0, "batch@100_ms": 1.0, "recall@100": 1.0, "own_mib": 1}
        return bench.Measured(rows, kind, "search", found, "a machine", 0.5, "2030-01-31")

    measured = [search(1000, "exact", 4.0, 1.0), search(2000, "exact", 8.0, 1.0)]
    measured += [search(1000, "hnsw", 0.2, 0.99), search(2000, "hnsw", 2.0, 0.98), search(2000, "int8", 16.0, 1.0)]
    exact, int8, hnsw, at_once = bench.holds(measured)
    assert "takes 4 ms over 1,000 and 8 ms over 2,000 vectors." in exact
    assert "20 and 4.0 times as fast as exact search. Recall@8 is at least 0.980." in hnsw
    assert "0.5 times as fast as exact search. Recall@8 is 1.000." in int8 and "0.5 ms each over 2,000" in at_once
    bench.write_page(measured, tmp_path / "indexes.md")
    assert all(kind in (tmp_path / "growth.svg").read_text() for kind in ("exact", "int8", "hnsw"))


def test_the_page_is_fresh(bench):
    kept = bench.read(bench.RESULTS / "measured.json")
    assert len(bench.holds(kept)) <= 5 and (bench.RESULTS / "growth.svg").is_file()
    assert kept and (bench.RESULTS / "report.md").read_text(encoding="utf-8") == bench.page_of(kept)
