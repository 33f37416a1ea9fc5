"""The benchmark of a whole chain: its corpus, its records and its page."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    return importlib.import_module("scale")


def test_documents_are_whole_sentences_drawn_with_a_seed(bench, tmp_path):
    text = (
        "The river rises in the north. It is long and cold in winter. Too short. "
        + "x" * 300
        + ".\nBoats go to the sea."
    )
    (tmp_path / "text.jsonl").write_text(json.dumps({"title": "A", "text": text}) + "\n")
    for name in ("one", "two"):
        bench.write_corpus(tmp_path / "text.jsonl", tmp_path / f"{name}.jsonl", 50)
    documents = [json.loads(line) for line in (tmp_path / "one.jsonl").read_text().splitlines()]
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert len({each["_id"] for each in documents}) == 50 and len({each["text"] for each in documents}) > 40
    kept = {"The river rises in the north.", "It is long and cold in winter.", "Boats go to the sea."}
    for each in documents:
        assert bench.LEAST_BYTES <= len(each["text"]) + 1 < bench.LEAST_BYTES + 250
        assert set(bench.SENTENCE.split(each["text"])) <= kept


def test_a_record_replaces_the_one_before_and_the_page_has_the_ratio(bench, tmp_path):
    results, page = tmp_path / "scale.json", tmp_path / "scale.md"
    said = {"seconds": 30.0, "disk_mebibytes": 4.0, "memory_mebibytes": 1.0}
    one = bench.Measured(1000, True, "tiny", "tag", 10.0, 11.0, 33, 5.0, said, {}, "a machine", 2.0, "2030-01-31")
    for new in (one, replace(one, seconds=20.0), replace(one, documents=10_000, seconds=200.0)):
        bench.keep(new, results, page)
    assert [each.seconds for each in bench.read(results)] == [20.0, 200.0]
    text = page.read_text("utf-8")
    assert (
        "| 1,000 | `tag` | 20 | 30 | 1.50 | 33 | 1 | 5.0 | 4.0 |" in text
        and "the power 1.00 of" in text
        and "`tag` 20,000 (at the rate of 10,000)" in text
        and "0.15 to 1.50 times" in text
    )


def test_the_page_is_fresh(bench):
    kept = bench.read(bench.RESULTS / "measured.json")
    assert kept and (bench.RESULTS / "report.md").read_text(encoding="utf-8") == bench.page_of(kept)
