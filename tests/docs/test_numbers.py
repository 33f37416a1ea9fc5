"""Pages quote the numbers that were measured, and README has no other."""

from __future__ import annotations

import json
import re

import pytest

from docs.make_numbers import DEMO, FILE, PAGES, QUOTE, ROOT, Measured, numbers, quoting

MEASUREMENT = re.compile(r"(?<![\d.])[+-]?0?\.\d{2,}|\d[.\d]* times|\de-\d\d")
"""A share such as .62, a ratio, a deviation."""


def test_the_file_is_fresh():
    assert json.loads(FILE.read_text(encoding="utf-8")) == numbers(), "run: python docs/make_numbers.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_quote_what_was_measured(page):
    text = page.read_text(encoding="utf-8")
    assert QUOTE.search(text) and quoting(text, numbers()) == text, "run: python docs/make_numbers.py"
    assert not re.search(r"^\s*<!--number", text, re.MULTILINE), (
        "a line that begins with a comment is a paragraph of its own on the site"
    )


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "docs/results/index.md"])
def test_every_measurement_of_a_page_is_quoted(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not MEASUREMENT.findall(QUOTE.sub("", text).replace("</number-->", ""))


def test_a_number_that_differs_is_found():
    page = "EM is <!--number demo.with-->0.99<!--/number--> there."
    assert quoting(page, numbers()) == page.replace("0.99", numbers()["demo.with"])
    with pytest.raises(KeyError, match=r"demo\.other"):
        quoting(page.replace("demo.with", "demo.other"), numbers())


def test_a_number_that_is_gone_is_an_error():
    with pytest.raises(ValueError, match=r"README\.md"):
        Measured("README.md", "no such sentence (.*)").read()


def test_the_demo_has_a_range_of_several_runs():
    runs = [json.loads(line) for line in DEMO.read_text(encoding="utf-8").splitlines()]
    assert numbers()["demo.runs"] == str(len(runs)) and len({run["seed"] for run in runs}) >= 3
    assert all(0 < run["without"] < run["with"] < 1 for run in runs)
