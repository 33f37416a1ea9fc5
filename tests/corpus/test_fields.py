"""What a document says of itself is kept beside its blocks, typed, once for each document; a corpus that says nothing has no further file."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.artifacts import Origin, open_artifact, writing
from realmctl.corpus import fields_file
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.fields import kept, kind_of, type_of, typed
from realmctl.corpus.fields_file import FieldsWriter, StoredFields
from realmctl.errors import ConfigError, InputError
from stages.chunk import Chunk
from stages.revise import Revise


def chunk(folder, *corpus, **settings):
    return Chunk(corpus=corpus, **{"tokenizer": "train:200", "workers": 1, **settings}).make(folder / "blocks")


def fields_by_document(blocks):
    return {block.document: dict(block.fields) for block in Corpus(blocks)}


def lines(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_corpus_without_fields_has_the_same_files_as_before(tmp_path):
    made = chunk(tmp_path, lines(tmp_path / "c.jsonl", {"id": "a", "text": "The lamp is old.", "date": "2024"}))
    assert "fields" not in made.metrics and not [name for name in made.manifest.files if "field" in name]
    assert Corpus(made)[0].fields == {}


ROWS = [
    {"id": "a", "text": "The lamp is old.", "Date": "2024-05-01", "price": 2.50, "tags": ["x", "y"], "code": "007"},
    {"id": "b", "text": "The stone is new.", "Date": "2023-04", "price": "3", "tags": [], "code": 8},
    {"id": "c", "text": "The cloud is white.", "Date": None, "price": None, "other": {"deep": 1}},
]


def test_named_fields_of_json_lines_are_kept(tmp_path, capfd):
    made = chunk(tmp_path, lines(tmp_path / "c.jsonl", *ROWS), keep_fields="Date, price,tags,code,absent")
    assert made.metrics["fields"] == {"code": "text", "date": "date", "price": "number", "tags": "list"}
    assert fields_by_document(made) == {
        "a": {"date": "2024-05-01", "price": 2.5, "tags": ["x", "y"], "code": "007"},
        "b": {"date": "2023-04", "price": 3, "code": "8"},
        "c": {},
    }
    assert "no document has a value of absent, which --keep-fields names" in capfd.readouterr().err


def test_named_columns_of_a_table_are_kept_and_one_that_is_not_there_is_named(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("id,Text,Published On,year\na,The lamp is old.,2024-05-01,1999\nb,The stone is new.,,2001\n")
    made = chunk(tmp_path, table, keep_fields="published on,year", text_field="text")
    assert fields_by_document(made) == {"a": {"published on": "2024-05-01", "year": 1999}, "b": {"year": 2001}}
    with pytest.raises(InputError, match=r"no column is named yaer.*published on, year.*--keep-fields"):
        chunk(tmp_path / "other", table, keep_fields="yaer", text_field="text")


def test_columns_of_parquet_are_kept_with_dates_and_lists(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import datetime
    import decimal

    import pyarrow.parquet as pq

    day = datetime.date(2024, 5, 1)
    table = pa.table(
        {
            "id": ["a"],
            "text": ["The lamp is old."],
            "Day": [day],
            "at": [datetime.datetime(2024, 5, 1, 10, 30)],
            "price": [decimal.Decimal("2.50")],
            "tags": [["x", "y"]],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    made = chunk(tmp_path, tmp_path / "t.parquet", keep_fields="day,at,price,tags")
    assert fields_by_document(made)["a"] == {
        "day": "2024-05-01",
        "at": "2024-05-01T10:30:00",
        "price": 2.5,
        "tags": ["x", "y"],
    }
    with pytest.raises(InputError, match="no column is named dya"):
        chunk(tmp_path / "other", tmp_path / "t.parquet", keep_fields="dya")


@pytest.mark.parametrize("given", ["a,,b", ",", "a,a"])
def test_names_that_are_none_are_refused(tmp_path, given):
    with pytest.raises(ConfigError, match="--keep-fields"):
        chunk(tmp_path, lines(tmp_path / "c.jsonl", *ROWS), keep_fields=given)


def test_types_of_values():
    assert type_of(["year", "number"]) == "number" and type_of(["year"]) == "number"
    assert type_of(["year", "date"]) == "date" and type_of(["date", "number"]) == "text"
    assert type_of(["list", "text", "date"]) == "list" and type_of(["text", "number"]) == "text"
    kinds = {"7": "number", "-2.5e3": "number", "1999": "year", "007": "text", "2024-13": "text", "2024-05": "date"}
    kinds |= {
        "2024/05/01": "date",
        "2024-05-01T10:30:00.5+02:00": "date",
        "1.2.3": "text",
        "1e999": "text",
        "١": "text",
    }
    assert {value: kind_of(value) for value in kinds} == kinds


def test_values_that_say_nothing_are_left_out():
    given = {
        "A": " x  y ",
        "b": "",
        "c": None,
        "d": [],
        "e": [[1]],
        "f": {"G": {"h": True}},
        "": "x",
        "i": float("nan"),
    }
    assert kept(given) == {"a": "x y", "f.g.h": "true"}
    assert kept({"big": 2**60, "x" * 300: "y", "n": 2**52}) == {"big": str(2**60), "n": 2**52}
    deep = current = {}
    for _ in range(5000):
        current["a"] = {}
        current = current["a"]
    current["a"] = "x"
    assert kept(deep) == {}


VALUES = st.one_of(
    st.text(max_size=6), st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False), st.booleans()
)
DOCUMENTS = st.lists(
    st.tuples(
        st.integers(1, 4), st.dictionaries(st.sampled_from("abc"), st.one_of(VALUES, st.lists(VALUES, max_size=3)))
    ),
    max_size=12,
)


@given(DOCUMENTS)
def test_what_is_read_back_is_what_was_given(tmp_path_factory, documents):
    folder = tmp_path_factory.mktemp("f")
    written = [kept(given) for _, given in documents]
    with writing(folder / "v1", Origin("blocks", "test", 1, {}, {}, {})) as out:
        writer, row, expected = FieldsWriter(out.file), 0, []
        for number, (blocks, _) in enumerate(documents):
            for _ in range(blocks):
                writer.add(str(number), written[number])
                expected.append(written[number])
        writer.close(None)
        out.file("other").write_text("x")
    found = StoredFields(open_artifact(folder / "v1"))
    for row, own in enumerate(expected):
        assert found.of(row) == {name: typed(value, found.types[name]) for name, value in own.items()}
    rows = [row for start, stop, _ in found.all("abc") for row in range(start, stop)]
    assert rows == [row for row, own in enumerate(expected) if own]


def test_more_fields_than_are_kept_are_told(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(fields_file, "MOST_FIELDS", 3)
    rows = [{"id": str(n), "text": "The lamp is old.", f"f{n}": "x"} for n in range(5)]
    made = chunk(tmp_path, lines(tmp_path / "c.jsonl", *rows), keep_fields="f0,f1,f2,f3,f4")
    assert [*made.metrics["fields"]] == ["f0", "f1", "f2"]
    assert "more than 3 different fields. f3, f4" in capfd.readouterr().err


def test_edits_keep_the_fields_of_a_document_and_a_changed_field_is_a_change(tmp_path):
    settings = {"keep_fields": "date", "max_wordpieces": 32}
    corpus = lines(tmp_path / "c.jsonl", *ROWS[:2])
    made = Chunk(corpus=(corpus,), tokenizer="train:200", workers=1, **{**settings, "keep_fields": "Date"}).make(
        tmp_path / "blocks"
    )
    edits = lines(
        tmp_path / "edits.jsonl",
        {"op": "update", "id": "a", "text": "The lamp is new."},
        {"op": "add", "id": "n", "text": "A horse."},
    )
    revised = Revise(blocks=made, edits=edits).make(tmp_path / "revised")
    assert fields_by_document(revised) == {"a": {"date": "2024-05-01"}, "b": {"date": "2023-04"}, "n": {}}
    corpus = lines(tmp_path / "c.jsonl", {**ROWS[0], "Date": "2025-01-01"}, ROWS[1])
    again = Revise(blocks=made, corpus=(corpus,)).make(tmp_path / "again")
    assert (again.metrics["documents_changed"], again.metrics["blocks_kept"]) == (1, 2)
    assert fields_by_document(again)["a"] == {"date": "2025-01-01"}


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("field_rows.npy", lambda path: np.save(path, np.array([[2, 1], [0, 5]]))),
        ("field_rows.npy", lambda path: np.save(path, np.array([[0, 1]]))),
        ("fields.json", lambda path: path.write_text('{"date": "colour"}')),
        ("fields.json", lambda path: path.write_text("[" * 10_000)),
        ("fields.json", lambda path: path.write_text('{"date": "number", "price": "text"}')),
    ],
)
def test_damaged_files_are_told(tmp_path, name, damage):
    made = chunk(tmp_path, lines(tmp_path / "c.jsonl", *ROWS), keep_fields="Date,price")
    path = made.path / name
    path.chmod(0o644)
    damage(path)
    with pytest.raises(InputError, match=r"again|Restore"):
        [block.fields for block in Corpus(made)]


def test_blocks_of_a_document_share_one_record(tmp_path):
    draw = random.Random(0)
    text = " ".join(f"The {draw.choice('abcdef')} is {n}." for n in range(200))
    made = chunk(
        tmp_path,
        lines(tmp_path / "c.jsonl", {"id": "a", "text": text, "d": "2024"}),
        keep_fields="d",
        max_wordpieces=32,
    )
    corpus = Corpus(made)
    assert len(corpus) > 10 and {tuple(block.fields.items()) for block in corpus} == {(("d", 2024),)}
    assert [*StoredFields(made).all(["d"])] == [(0, len(corpus), {"d": 2024})]
