"""The page of reliability is what was counted, and names tests that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

from docs.make_reliability import COUNTS, PAGE, PROMISES, REPORT, page, report

ROOT = Path(__file__).parents[2]


def test_the_page_is_fresh():
    counts = json.loads(COUNTS.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == page(counts)
    assert REPORT.read_text(encoding="utf-8") == report(counts)


def test_every_promise_names_tests_that_there_are():
    missing = [test for _, tests in PROMISES for test in tests if not (ROOT / test).is_file()]
    assert not missing and all(tests for _, tests in PROMISES)


def test_every_count_was_counted_by_a_test():
    source = re.sub(r"count\(\s+", "count(", "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py")))
    assert all(
        f'count("{kind}"' in source and facts["injected"] > 0
        for kind, facts in json.loads(COUNTS.read_text())["faults"].items()
    )
