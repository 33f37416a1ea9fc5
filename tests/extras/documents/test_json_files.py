"""JSON that is no JSON lines: the objects with a text are documents, and other layouts keep their readers."""

from __future__ import annotations

import json

import pytest

from realmctl.corpus.corpus_file import corpus_files
from realmctl.corpus.formats.detect import format_of
from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError

ROWS = [
    {"id": "x", "title": "Ash", "text": "A tree \u00e4 of 1.50 m."},
    {"id": "y", "title": 1.10, "text": "Two\nlines {[."},
]
BY_ID = {each["id"]: {"title": each["title"], "text": each["text"]} for each in ROWS}


def found(tmp_path, text: str, **settings: str) -> list[tuple[str, str, str]]:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    return [(each.id, each.title, each.text) for each in documents([tmp_path / "a.json"], CorpusSettings(**settings))]


@pytest.mark.parametrize("indent", [None, 1, "\t"])
@pytest.mark.parametrize(
    "value", [ROWS, {"data": ROWS}, {"count": 2, "documents": ROWS}, BY_ID], ids=["list", "data", "named", "by-id"]
)
def test_objects_in_a_list_under_a_name_or_by_id(tmp_path, value, indent):
    assert found(tmp_path, json.dumps(value, indent=indent).replace("1.1", "1.10")) == [
        ("x", "Ash", ROWS[0]["text"]), ("y", "1.10", ROWS[1]["text"])
    ]  # fmt: skip


def test_objects_over_several_lines(tmp_path):
    text = "\n".join(json.dumps(row, indent=2) for row in ROWS)
    assert [identity for identity, *_ in found(tmp_path, text)] == ["x", "y"]
    with pytest.raises(InputError, match=r"a.json:8: not valid JSON"):
        found(tmp_path, f"{json.dumps(ROWS[0], indent=2)}\n\n\n{{'id': 2}}")
    with pytest.raises(InputError, match=r"a.json:6: a JSON list"):
        found(tmp_path, f"{json.dumps(ROWS[0], indent=2)}\n[]")


def test_fields_are_named_and_ids_are_made(tmp_path):
    rows = [{"head": "Ash", "story": "A tree."}, {"head": "Elm", "story": "Too."}]
    assert found(tmp_path, json.dumps({"items": rows}), title_field="head", text_field="story") == [
        ("a.json-1", "Ash", "A tree."), ("a.json-2", "Elm", "Too.")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (json.dumps(ROWS[0]) + "\n" + json.dumps(ROWS[1]), "JSON lines"),
        (json.dumps({"text": "x", "meta": {"text": "y"}}), "JSON lines"),
        (json.dumps({"data": [{"title": "T", "paragraphs": [{"context": "c", "qas": []}]}]}, indent=1), "SQuAD-layout JSON"),
        ('{"id": "x", broken, "text": 3}\n{"id": 4}', "JSON lines"),
        (json.dumps({"text": "x" * 2**17}), "JSON lines"),
    ],
)  # fmt: skip
def test_other_layouts_keep_their_readers(tmp_path, text, name):
    (tmp_path / "a.json").write_text(text)
    assert format_of(*corpus_files([tmp_path / "a.json"], CorpusSettings())).name == name


def test_deep_nesting_is_an_error_and_no_crash(tmp_path):
    with pytest.raises(InputError):
        found(tmp_path, '{\n"a": ' + "[" * 100_000)
