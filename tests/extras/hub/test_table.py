"""A table of texts, fields and vectors: out and in again it is the same, and a bad one is refused by name before anything is made."""

from __future__ import annotations

import json

import numpy as np
import pytest

from realmctl.artifacts import open_artifact, version_numbers
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.extras.hub.exports import table as written
from realmctl.extras.hub.imports.table import import_table, is_table
from realmctl.index.vectors import open_vectors
from realmctl.retrieval.search.opening import load_search
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from tests.fixtures.retriever import make_retriever

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
QUERY = "Where was Ada Lorn born?"


@pytest.fixture(scope="module")
def made(tmp_path_factory, one_thread):
    """A workspace of documents, some with fields: blocks, a retriever, embeddings and an index."""
    folder = tmp_path_factory.mktemp("table")
    rows = [
        {"id": f"d{n}", "title": f"Title {n}", "text": f"Ada Lorn was born in {1900 + n}. " * 4 + "It rained. " * 9}
        | (
            {"date": f"2024-05-{n + 1:02}", "tags": ["a", "b"][: n % 3], "price": 2 if n == 3 else n / 2}
            if n % 2
            else {}
        )
        for n in range(12)
    ]
    (folder / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    blocks = Chunk(
        corpus=(folder / "c.jsonl",), tokenizer="train:300", max_wordpieces=40, workers=1, keep_fields="date,tags,price"
    ).make(folder / "w/blocks")
    retriever = make_retriever(folder / "w/retriever", blocks)
    embeddings = Embed(blocks=blocks, retriever=retriever, precision="fp32").make(folder / "w/embeddings")
    BuildIndex(embeddings=embeddings, type="exact").make(folder / "w/index")
    return folder / "w"


@pytest.fixture(scope="module")
def exported(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("out") / "t.parquet"
    written.write_table(open_artifact(made / "embeddings"), open_artifact(made / "blocks"), path)
    return path


def test_the_command_writes_the_table(made, exported, realmctl, tmp_path):
    words = ("export", made / "embeddings", tmp_path / "t.parquet", "--form", "parquet", "--json")
    code, out, err = realmctl(*words, "--blocks", made / "blocks")
    assert code == 0 and json.loads(out)["rows"] == len(Corpus(open_artifact(made / "blocks"))), err
    assert pq.read_table(tmp_path / "t.parquet").equals(pq.read_table(exported))
    code, _, err = realmctl(*words)
    assert code == 2 and "--blocks" in err


def test_the_table_has_what_the_blocks_have(made, exported, monkeypatch):
    corpus = Corpus(open_artifact(made / "blocks"))
    table = pq.read_table(exported)
    rows = table.to_pylist()
    assert table.column_names == ["id", "document", "title", "section", "page", "text", "fields", "vector"]
    for row, block in zip(rows, corpus, strict=True):
        assert (row["id"], row["document"], row["title"], row["text"]) == (
            block.id,
            block.document,
            block.title,
            block.text,
        )
        assert {name: value for name, value in row["fields"].items() if value is not None} == block.fields
    stored = np.asarray(open_vectors(open_artifact(made / "embeddings").file("embeddings.npy")), np.float32)
    np.testing.assert_array_equal(np.array([row["vector"] for row in rows], np.float32), stored)
    assert table.schema.field("vector").type == pa.list_(pa.float32(), stored.shape[1])
    told = json.loads(table.schema.metadata[b"realmctl"])
    assert told["embeddings"] == open_artifact(made / "embeddings").content and told["fields"]["date"] == "date"
    card = table.schema.metadata[b"README.md"].decode()
    assert f"{len(corpus)} blocks" in card and told["retriever"] in card and len(told["retriever"]) == 64


def test_parts_of_any_size_make_the_same_table(made, exported, monkeypatch, tmp_path):
    monkeypatch.setattr(written, "ROWS_AT_ONCE", 5)
    written.write_table(open_artifact(made / "embeddings"), open_artifact(made / "blocks"), tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").equals(pq.read_table(exported))
    assert pq.ParquetFile(tmp_path / "t.parquet").num_row_groups > 2


def test_a_table_comes_back_as_blocks_and_embeddings_that_are_searched_alike(made, exported, realmctl, tmp_path):
    work = tmp_path / "w"
    words = ("import-table", exported, "--retriever", made / "retriever", "-w", work)
    for _ in range(2):
        code, _, err = realmctl(*words)
        assert code == 0 and version_numbers(work / "blocks") == version_numbers(work / "embeddings") == [1], err
    assert "other vectors" not in err
    before, after = (Corpus(open_artifact(each / "blocks")) for each in (made, work))
    for old, new in zip(before, after, strict=True):
        assert (old.id, old.document, old.title, old.text, old.fields) == (
            new.id,
            new.document,
            new.title,
            new.text,
            new.fields,
        )
        assert repr(old.fields.get("price")) == repr(new.fields.get("price"))  # 2, not 2.0
        assert old.wordpieces.body == new.wordpieces.body and old.wordpieces.title == new.wordpieces.title
    assert before.fields.types == after.fields.types == open_artifact(work / "blocks").metrics["fields"]
    BuildIndex(embeddings=open_artifact(work / "embeddings"), type="exact").make(work / "index")
    ours, theirs = (
        load_search(place, retriever=made / "retriever", device="cpu").search(QUERY, 6, filter="price > 1")
        for place in (made, work)
    )
    assert [(hit.block.id, pytest.approx(hit.score, rel=1e-5)) for hit in ours] == [
        (h.block.id, h.score) for h in theirs
    ]


BAD = {
    "no vectors": (lambda t: t.drop(["vector"]), InputError, "no column vector"),
    "no ids": (lambda t: t.drop(["id"]), InputError, "no column id"),
    "no text": (lambda t: t.drop(["text"]), InputError, "no column text"),
    "another width": (
        lambda t: put(t, "vector", [[1.0, 2.0]] * len(t)),
        MismatchError,
        "row 1: its vector has 2 numbers",
    ),
    "NaN": (lambda t: changed(t, "vector", 3, [float("nan")] * 8), InputError, "row 4: its vector holds NaN"),
    "no vector in a row": (lambda t: changed(t, "vector", 2, None), InputError, "row 3: it has no vector"),
    "words as vectors": (lambda t: put(t, "vector", ["x"] * len(t)), InputError, "row 1: it has no vector"),
    "an id twice": (lambda t: changed(t, "id", 4, "d0-0"), InputError, "already used"),
    "a document apart": (lambda t: changed(t, "document", len(t) - 1, "d0"), InputError, "'d0' is already used"),
    "an empty text": (lambda t: changed(t, "text", 1, " "), InputError, "row 2: its text is ' '"),
    "a null title": (lambda t: changed(t, "title", 1, None), None, ""),
    "no row": (lambda t: t.slice(0, 0), InputError, "has no row"),
}


def put(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def changed(table, name, row, value):
    values = table.column(name).to_pylist()
    values[row] = value
    return put(table, name, values)


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_refused(made, exported, tmp_path, case):
    spoil, error, told = BAD[case]
    pq.write_table(spoil(pq.read_table(exported)), tmp_path / "t.parquet")
    assert is_table(tmp_path / "t.parquet")
    if error is None:
        assert set(import_table(tmp_path / "t.parquet", made / "retriever", tmp_path / "w")) == {"blocks", "embeddings"}
        return
    with pytest.raises(error, match=told):
        import_table(tmp_path / "t.parquet", made / "retriever", tmp_path / "w")
    assert version_numbers(tmp_path / "w/embeddings") == []


def test_a_table_without_vectors_ends_the_command_with_the_reason(made, exported, realmctl, tmp_path):
    pq.write_table(pq.read_table(exported).drop(["vector"]), tmp_path / "t.parquet")
    code, out, err = realmctl(
        "import-table", tmp_path / "t.parquet", "--retriever", made / "retriever", "-w", tmp_path / "w"
    )
    assert (code, out) == (3, "") and "t.parquet has no column vector" in err and not (tmp_path / "w").exists()


def test_a_table_without_its_retriever_and_one_for_an_encoder_are_refused(exported, realmctl, tmp_path):
    with pytest.raises(ConfigError, match="--retriever"):
        import_table(exported, None, tmp_path / "w")
    code, _, err = realmctl("import", exported, "--pooling", "cls", "-w", tmp_path / "w")
    assert code == 2 and "import-table" in err


def test_vectors_of_another_retriever_are_told(made, exported, tmp_path, capfd):
    table = pq.read_table(exported)
    noise = np.random.default_rng(0).normal(size=(len(table), 8)).astype(np.float32)
    pq.write_table(put(table, "vector", noise.tolist()), tmp_path / "t.parquet")
    import_table(tmp_path / "t.parquet", made / "retriever", tmp_path / "w")
    assert "gives its first texts other vectors" in capfd.readouterr().err
