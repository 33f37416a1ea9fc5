"""Scores that were changed and sealed again: `report` names the place, and never shows a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from realmctl.errors import InputError
from realmctl.extras.report.evidence import question_evidence
from realmctl.extras.report.funnel import funnel_of
from realmctl.extras.report.outcomes import read_outcomes
from tests.extras.report.conftest import WrittenScores

CONTEXT = {"id": "1", "title": "t", "text": "Ada", "score": 1.0, "has_answer": True, "has_answer_substring": True}
LINES: dict[str, dict[str, Any]] = {
    "retrieved.json": {"question": "Who?", "answers": ["Ada"], "ctxs": [CONTEXT]},
    "predictions.jsonl": {"question": "Who?", "prediction": "Ada"},
    "evidence.jsonl": {"answers": ["Ada"], "read": 1, "score": 1.0, "rank": 1, "start": 0, "end": 3},
}
ODD: list[Any] = [None, 7, -1, 1.5, "x", [], {}, [7], [{}], [{"title": 1}], 10**30, True, "\ud800"]


def page(folder: Path, lines: dict[str, dict[str, Any]]) -> int:
    """Read everything that a page shows of these scores."""
    files = json.dumps({name: json.dumps(line) + "\n" for name, line in lines.items()})
    scores = WrittenScores(files=files, numbers='{"scorer": "orqa"}').make(folder / "scores")
    found = read_outcomes(scores, None)
    return len(question_evidence(scores, found, funnel_of(found).depths, 5))


def test_the_sound_lines_make_a_page(tmp_path):
    assert page(tmp_path, LINES) == 1


CASES = [(name, key) for name, line in LINES.items() for key in line]


@pytest.mark.parametrize(("name", "key"), CASES)
@pytest.mark.parametrize("closed_book", [False, True])
def test_a_missing_or_odd_field_is_one_paragraph(tmp_path, name, key, closed_book):
    lines = {each: line for each, line in LINES.items() if not closed_book or each != "retrieved.json"}
    if name not in lines:
        return
    refused, changes = 0, [{k: v for k, v in lines[name].items() if k != key}]
    changes += [{**lines[name], key: value} for value in ODD]
    if closed_book:
        changes = [
            {**change, "rank": None} if name == "evidence.jsonl" and key != "rank" else change for change in changes
        ]
        lines["evidence.jsonl"] = {**lines["evidence.jsonl"], "rank": None}
    for number, change in enumerate(changes):
        try:
            page(tmp_path / str(number), {**lines, name: change})
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 500
            refused += 1
    assert refused or key in ("score", "start", "end", "rank")


@pytest.mark.parametrize("key", CONTEXT)
def test_a_missing_or_odd_field_of_a_block_is_one_paragraph(tmp_path, key):
    blocks = [{k: v for k, v in CONTEXT.items() if k != key}, *({**CONTEXT, key: value} for value in ODD)]
    refused = 0
    for number, block in enumerate(blocks):
        entry = {**LINES["retrieved.json"], "ctxs": [block]}
        try:
            page(tmp_path / str(number), {**LINES, "retrieved.json": entry})
        except InputError as error:
            assert "retrieved.json:1" in str(error) and f"'{key}'" in str(error)
            refused += 1
    assert refused or key in ("id", "has_answer_substring")


def test_the_key_of_the_reproduction_is_named(tmp_path):
    with pytest.raises(InputError, match=r"predictions\.jsonl:1: .*'prediction'"):
        page(tmp_path, {**LINES, "predictions.jsonl": {"question": "Who?"}})
