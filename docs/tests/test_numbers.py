"""Pages quote the numbers that were measured, and README has no other."""

from __future__ import annotations

import json
import re

import pytest

from docs import make_numbers
from docs.make_numbers import DEMO, FILE, PAGES, PART, QUOTE, ROOT, Measured, numbers, part, quoting

MEASUREMENT = re.compile(r"(?<![\d.])[+-]?0?\.\d{2,}|\d[.\d]* times|\de-\d\d")
"""A share such as .62, a ratio, a deviation."""


def test_the_file_is_fresh():
    assert json.loads(FILE.read_text(encoding="utf-8")) == numbers(), "run: python docs/make_numbers.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_quote_what_was_measured(page):
    text = page.read_text(encoding="utf-8")
    assert (QUOTE.search(text) or PART.search(text)) and quoting(text, numbers(), page) == text, (
        "run: python docs/make_numbers.py"
    )
    assert not re.search(r"^\s*<!--number", text, re.MULTILINE), (
        "a line that begins with a comment is a paragraph of its own on the site"
    )


RESULTS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "results").glob("*.md"))


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", *RESULTS])
def test_every_measurement_of_a_page_is_quoted(page):
    text = PART.sub("", (ROOT / page).read_text(encoding="utf-8"))
    text = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    assert not MEASUREMENT.findall(QUOTE.sub("", text))


def test_a_part_is_that_of_its_report_with_links_that_lead_there(tmp_path, monkeypatch):
    monkeypatch.setattr(make_numbers, "ROOT", tmp_path)
    (tmp_path / "docs" / "results" / "x").mkdir(parents=True)
    text = "## One\n\n- a [b](c.md#d)\n  goes on\n\n| n | m |\n|---|---|\n| 1 | 2 |\n\n- e\n\n## Two\n\n- f\n"
    (tmp_path / "docs" / "results" / "x" / "report.md").write_text(text)
    page = tmp_path / "docs" / "results" / "x.md"
    specs = ("One list 1", "One list 2", "Two list 1", "One table 1 columns 2")
    empty = "".join(f"<!--part docs/results/x/report.md#{spec}-->\n\n<!--/part-->\n\nbetween\n\n" for spec in specs)
    filled = quoting(empty, {}, page)
    parts = ("- a [b](x/c.md#d)\n  goes on", "- e", "- f", "| m |\n|---|\n| 2 |")
    assert [each[0].split("-->\n\n")[1].split("\n\n<!")[0] for each in PART.finditer(filled)] == [*parts]
    assert filled.count("between") == 4 and quoting(filled, {}, page) == filled
    with pytest.raises(ValueError, match=r"report\.md.*'Two' has 1 lists"):
        part("docs/results/x/report.md", "Two", "list", 2, "docs/results")


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
