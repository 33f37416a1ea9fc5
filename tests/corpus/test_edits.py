"""Edits files: what a line may say, and what the edits do to a list of documents."""

from __future__ import annotations

import json

import pytest

from realmctl.corpus.edits import apply_edits, read_edits
from realmctl.corpus.fields import NOTHING
from realmctl.errors import InputError

STORED = {"a": "One", "b": "Two", "c": "Two"}


def write(path, *records):
    path.write_text("".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records))
    return path


def applied(tmp_path, *records):
    return apply_edits(STORED, read_edits(write(tmp_path / "edits.jsonl", *records)))


def outline(documents):
    return [(key, STORED[key], "") if d is None else (key, d.title, d.text) for key, d in documents.items()]


def test_each_operation(tmp_path):
    found = applied(
        tmp_path,
        {"op": "update", "title": "One", "text": "new"},
        {"op": "remove", "id": "b"},
        {"op": "add", "id": "d", "text": "added"},
        {"op": "update", "id": "c", "title": "Three", "text": "renamed"},
    )
    assert outline(found) == [("a", "One", "new"), ("c", "Three", "renamed"), ("d", "", "added")]


def test_an_edit_sees_the_edits_before_it(tmp_path):
    found = applied(
        tmp_path,
        {"op": "remove", "id": "a"},
        {"op": "add", "id": "a", "title": "Again", "text": "first"},
        "",
        {"op": "update", "title": "Again", "text": "second"},
        {"op": "remove", "id": "b"},
        {"op": "remove", "title": "Two"},
    )
    assert outline(found) == [("a", "Again", "second")]


def test_numbers_are_ids(tmp_path):
    assert "7" in applied(tmp_path, {"op": "add", "id": 7, "text": "x"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "JSON"),
        ("[]", "op"),
        ({"op": "delete", "id": "a"}, "op"),
        ({"op": ["add"]}, "op"),
        ({"op": "add", "text": "x"}, "id"),
        ({"op": "add", "id": "z", "text": " "}, "text"),
        ({"op": "update", "id": "a"}, "text"),
        ({"op": "update", "text": "x"}, "id or title"),
        ({"op": "remove"}, "id or title"),
        ({"op": "remove", "id": "a", "text": "x"}, "text"),
        ({"op": "remove", "id": True}, "text"),
        ({"op": "update", "id": "a", "text": None}, "text"),
        ('{"op": "update", "id": "a", "text": "\\ud800"}', "surrogate"),
        ({"op": "remove", "id": "zz"}, "'zz'"),
        ({"op": "remove", "title": "Nine"}, "'Nine'"),
        ({"op": "remove", "title": "Two"}, "'Two'.* b, c"),
        ({"op": "add", "id": "a", "text": "x"}, "'a'"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    with pytest.raises(InputError, match=message) as caught:
        applied(tmp_path, {"op": "update", "id": "a", "text": "fine"}, line)
    assert f"{tmp_path / 'edits.jsonl'}:2" in str(caught.value)


def test_a_file_without_edits(tmp_path):
    with pytest.raises(InputError, match="has no edit"):
        applied(tmp_path, "", "  ")


def test_fields_are_those_of_the_edit_or_stay(tmp_path):
    found = applied(
        tmp_path,
        {"op": "add", "id": "d", "text": "x", "fields": {"Date": "2024-05-01", "tags": ["a"], "none": ""}},
        {"op": "update", "id": "d", "text": "y"},
        {"op": "add", "id": "e", "text": "x"},
        {"op": "update", "id": "a", "text": "y"},
        {"op": "update", "id": "b", "text": "y", "fields": {}},
        {"op": "update", "id": "b", "text": "z"},
    )
    assert found["d"].fields == {"date": "2024-05-01", "tags": ["a"]} and found["e"].fields == {}
    assert found["a"].fields is NOTHING and found["b"].fields == {} and found["b"].fields is not NOTHING
    with pytest.raises(InputError, match=r"edits.jsonl:1: fields are \[1\], and an object is needed"):
        applied(tmp_path, {"op": "update", "id": "a", "text": "y", "fields": [1]})
    with pytest.raises(InputError, match="remove has no field fields"):
        applied(tmp_path, {"op": "remove", "id": "a", "fields": {}})
