"""Training files of DPR and Tevatron are written as these write them, and read back."""

from __future__ import annotations

import gzip
import json

import pytest

from realmctl.corpus.document import Document
from realmctl.errors import InputError
from realmctl.extras.ir.labelled import LabelledQuestion, read_labelled
from realmctl.inputs import streams

EXPECTED = [
    LabelledQuestion("who?", (Document("", "Ada", "Ada wrote it."),), (Document("", "", "Bob, é."),)),
    LabelledQuestion("where?", (Document("", "", "There."), Document("", "", "Here.")), ()),
]
DPR = [
    {
        "dataset": "nq",
        "question": "who?",
        "answers": ["Ada"],
        "positive_ctxs": [{"title": "Ada", "text": "Ada wrote it.", "score": 1.0, "passage_id": "1"}],
        "negative_ctxs": [{"title": "x", "text": "y"}],
        "hard_negative_ctxs": [{"title": None, "text": "Bob, é."}, {"title": "empty", "text": " "}],
    },
    {"question": "where?", "positive_ctxs": [{"text": "There."}, {"text": "Here."}], "hard_negative_ctxs": []},
]
TEVATRON = [
    {
        "query_id": "1",
        "query": "who?",
        "positive_passages": [{"docid": "1", "title": "Ada", "text": "Ada wrote it."}],
        "negative_passages": [{"docid": "2", "title": "", "text": "Bob, é."}],
    },
    {"query_id": "2", "query": "where?", "positive_passages": [{"text": "There."}, {"text": "Here."}]},
]


def write(path, text):
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_dprs_list_in_pieces_of_any_size(tmp_path, monkeypatch, indent, size):
    monkeypatch.setattr(streams, "READ_BYTES", size)
    text = json.dumps(DPR, indent=indent, ensure_ascii=False) + "\n"
    assert list(read_labelled(write(tmp_path / "d.json", text))) == EXPECTED


def test_tevatrons_lines_plain_compressed_and_in_parquet(tmp_path):
    text = "".join(json.dumps(record) + "\n" for record in TEVATRON)
    assert list(read_labelled(write(tmp_path / "t.jsonl", text))) == EXPECTED
    (tmp_path / "t.gz").write_bytes(gzip.compress(text.encode()))
    assert list(read_labelled(tmp_path / "t.gz")) == EXPECTED
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    parquet.write_table(pyarrow.Table.from_pylist(TEVATRON), tmp_path / "t.parquet")
    assert list(read_labelled(tmp_path / "t.parquet")) == EXPECTED


FLAG_EMBEDDING = [
    {"query": "who?", "pos": ["Ada wrote it."], "neg": ["Bob, é.", " "], "pos_scores": [1.0], "prompt": "Find it."},
    {"query": "where?", "pos": ["There.", "Here."], "neg": []},
]
TRIPLETS = [
    {"anchor": "who?", "positive": "Ada wrote it.", "negative": "Bob, é."},
    {"anchor": "where?", "positive": "There.", "negative_1": "Mars.", "negative_2": "Io."},
    {"query": "7?", "positive": "7"},
]


def of(question: str, positives: list[str], negatives: list[str]) -> LabelledQuestion:
    positive, negative = (tuple(Document("", "", text) for text in texts) for texts in (positives, negatives))
    return LabelledQuestion(question, positive, negative)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (FLAG_EMBEDDING, [of("who?", ["Ada wrote it."], ["Bob, é."]), of("where?", ["There.", "Here."], [])]),
        (
            TRIPLETS,
            [
                of("who?", ["Ada wrote it."], ["Bob, é."]),
                of("where?", ["There."], ["Mars.", "Io."]),
                of("7?", ["7"], []),
            ],
        ),
    ],
    ids=["FlagEmbedding", "sentence-transformers"],
)
def test_passages_that_are_texts_alone(tmp_path, records, expected):
    lines = "".join(json.dumps(record) + "\n" for record in records)
    assert list(read_labelled(write(tmp_path / "lines", lines))) == expected
    assert list(read_labelled(write(tmp_path / "list", json.dumps(records)))) == expected
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    names = {name: None for record in records for name in record}
    parquet.write_table(pyarrow.Table.from_pylist([names | record for record in records]), tmp_path / "p")
    assert list(read_labelled(tmp_path / "p")) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps(DPR)[:-5], "damaged"),
        ('[{"question": "who?", "positive_ctxs": []}, {]', "damaged"),
        ("[" * 100_000, "damaged"),
        ("[" + " " * (17 * 2**20), "damaged"),
        ('["x"]', "record 1: "),
        ('{"question": "who?", "answer": ["Ada"]}', "t:1: "),
        ('{"query": "who?", "positive_passages": [{"title": "x"}]}', "positive_passages|passages"),
        ('{"query": "who?", "positive_passages": [{"text": "\\ud800"}]}', "positive_passages|passages"),
        ('{"query": "who?"\n', "t:1: "),
        ('{"query": "who?", "pos": [3]}', "t:1: pos "),
        ('{"anchor": "who?", "positive": 1}', "t:1: positive "),
    ],
)
def test_what_is_damaged_is_named(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        list(read_labelled(write(tmp_path / "t", text)))
