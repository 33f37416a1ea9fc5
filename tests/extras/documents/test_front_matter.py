"""Front matter of Markdown becomes fields of blocks, with types."""

from __future__ import annotations

import pytest

from realmctl.corpus.fields import moment
from tests.corpus.test_fields import chunk, fields_by_document

FRONT = """---
title: Refunds
date: {date}
Source: handbook
tags: {tags}
draft: false
params: {{level: {level}, more: {{deep: yes}}}}
---
# Refunds

We refund within {level} days. Ask the desk for the form.
"""


def test_front_matter_is_kept_with_types(tmp_path):
    pytest.importorskip("selectolax")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text(FRONT.format(date="2024-05-01", tags="[money, customers]", level=30))
    (folder / "b.md").write_text(FRONT.format(date="2023", tags="money", level=7.5))
    (folder / "c.md").write_text("+++\ntitle = 'T'\ndate = 2022-01-02T10:30:00Z\n+++\nText of a page.\n")
    (folder / "d.txt").write_text("Text of a page that says nothing of itself.")
    made = chunk(tmp_path, folder)
    types = {"date": "date", "draft": "text", "params.level": "number", "params.more.deep": "text"}
    assert made.metrics["fields"] == {**types, "source": "text", "tags": "list"}
    found = fields_by_document(made)
    assert found["a.md"] == {
        "date": "2024-05-01",
        "source": "handbook",
        "tags": ["money", "customers"],
        "draft": "false",
        "params.level": 30,
        "params.more.deep": "yes",
    }
    assert (found["b.md"]["date"], found["b.md"]["tags"], found["b.md"]["params.level"]) == ("2023", ["money"], 7.5)
    assert moment(found["c.md"]["date"]) == "2022-01-02T10:30:00" and found["d.txt"] == {}
