"""REALM's own reader as a reranker: the measures of a ranking, and the table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "examples" / "teacher"))

import own_reader as run

from realmctl.extras.ir.ranking.measures import measured, parsed


def test_measures_are_those_of_ir_measures():
    pytest.importorskip("ir_measures")
    grades = {"a": {"x": 1, "y": 0, "z": 1}, "b": {"x": 1}, "c": {"w": 1}}
    found = {
        "a": {"y": 3.0, "x": 2.0, "z": 1.0},
        "b": {f"n{n}": 9.0 - n for n in range(4)} | {"x": 0.5},
        "c": {"x": 1.0},
    }
    values = run.measured(grades, found)
    names = {"recall@1": "Success@1", "recall@5": "Success@5", "nDCG@10": "nDCG@10"}
    theirs = dict(measured(parsed(" ".join(names.values())), grades, found.items()))
    for own, name in names.items():
        assert values[own] == pytest.approx([theirs[query][name] for query in sorted(grades)], abs=1e-4)


def test_an_arm_is_compared_on_the_models_and_the_sets_that_it_has(tmp_path):
    def record(model: int, name: str, arm: str, *values: float) -> str:
        each = dict.fromkeys(run.MEASURES, values)
        return json.dumps({"model": model, "kind": "Wikipedia", "set": name, "arm": arm, "values": each})

    lines = [
        record(0, "nq", "retriever", 0.0, 1.0),
        record(1, "nq", "retriever", 1.0, 1.0),
        record(0, "nq", "masks", 1.0, 1.0),
    ]
    lines += [record(0, "trec", "retriever", 0.5), *(record(n, "nq", "both", 1.0, 1.0) for n in (0, 1))]
    lines += [record(0, "trec", "both", 0.75)]
    (tmp_path / "runs.jsonl").write_text("\n".join([*lines, ""]))
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in run.table(tmp_path / "runs.jsonl").splitlines()
    ]
    of = {tuple(row[:4]): row[4:] for row in rows if len(row) == 8}
    assert of["nq", "2", "2", "recall@1"] == ["0.750", "", "1.000", "1.000"]
    assert of["Wikipedia, all", "3", "1", "recall@1"] == ["0.500", "", "0.917", ""]
    apart = {tuple(row[:2]): row[2:] for row in rows if len(row) == 5}
    assert [cell[:6] for cell in apart["nq", "recall@1"]] == ["", "+0.250", "+0.500"]
    assert [cell[:6] for cell in apart["Wikipedia, all", "nDCG@10"]] == ["", "+0.417", ""]
