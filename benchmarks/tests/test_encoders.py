"""The benchmark of encoders: what it measures of tiny encoders beside sentence-transformers, and its report."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.fixtures import kinds

pytest.importorskip("sentence_transformers")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    threads = torch.get_num_threads()
    yield importlib.import_module("encoders")
    torch.set_num_threads(threads)


@pytest.fixture
def collection(tmp_path):
    """Twelve documents in BEIR's layout. Each query is a document, which it asks for."""
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    documents = kinds.texts(12)
    rows = [{"_id": f"d{number}", "title": "", "text": text} for number, text in enumerate(documents)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = [{"_id": f"q{number}", "text": text} for number, text in enumerate(documents)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    lines = "".join(f"q{number}\td{number}\t1\n" for number in range(11))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    return folder


def test_both_sides_are_measured_on_the_same_documents(bench, collection, tmp_path):
    encoders = [kinds.KINDS[kind](tmp_path / kind) for kind in ("distilbert", "static")]
    for row in bench.quality([collection], encoders):
        assert (row["documents"], row["queries"]) == (12, 11)
        theirs, ours = row["ndcg"]
        assert theirs == pytest.approx(ours, abs=1e-9) and theirs == pytest.approx(1, abs=0.2)
        assert row["apart"] < 1e-5 and min(row["rates"]) > 0


def test_ndcg_is_its_definition(bench, collection):
    """A relevant document at rank 3 gains 1 / log2(4); one that is not among the first ten gains nothing."""
    loaded = bench.Collection(collection)
    query_QD = np.eye(12, dtype=np.float32)[:11]
    document_ND = np.zeros((12, 12), np.float32)
    for query in range(11):
        document_ND[query, query] = 1
    assert loaded.ndcg(query_QD, document_ND) == 1
    document_ND[(0, 1), (2, 2)] = 3, 2
    assert loaded.ndcg(query_QD, document_ND) == pytest.approx((10 + 1 / np.log2(4)) / 11)
    document_ND[:11, 2] = np.arange(20, 9, -1)
    document_ND[2, 2] = 1
    assert loaded.ndcg(query_QD, document_ND) == pytest.approx(10 / 11)


def test_a_table_is_measured_and_made_of_an_encoder(bench, collection, tmp_path):
    texts = [collection / "corpus.jsonl"]
    made = kinds.KINDS["static"](tmp_path / "table")
    encoder = kinds.KINDS["bert"](tmp_path / "encoder")
    found = [
        *bench.static([collection], [made], texts, False, 5),
        *bench.static([collection], [encoder], texts, True, 5),
    ]
    assert [(row["distilled"], row["texts"]) for row in found] == [(False, 5), (True, 5)]
    assert all(row["apart"] < 1e-5 and len(row["seconds"]) == bench.ROUNDS for row in found)
    assert found[1]["ndcg"][1] > 0.5


def test_the_report_has_the_newest_row_of_each_thing(bench):
    row = {
        "what": "speed",
        "family": "t5",
        "collection": "c",
        "rounds": [[2.0, 3.0]] * 3,
        "cosine": 1.0,
        "place": "here",
    }
    page = bench.report([row, {**row, "rounds": [[2.0, 4.0], [2.0, 5.0], [1.0, 3.0]]}])
    assert page.count("`t5`") == 1 and "| `t5` | 2.0 | 4.0 | **2.50** (2.00-3.00) | 1.000000 |" in page


def test_the_page_is_fresh(bench):
    rows = [*bench._rows(bench.RESULTS / "runs.jsonl")]
    assert bench.report(rows) == (bench.RESULTS / "report.md").read_text(encoding="utf-8"), (
        "run: python benchmarks/encoders.py report"
    )
