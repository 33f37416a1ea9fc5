"""Each form is written, and read back by the reader of the tool that it is for, or by ours."""

from __future__ import annotations

import csv
import json
import pickle

import numpy as np
import pytest

from realmctl.corpus.corpus import Corpus
from realmctl.corpus.reading import documents
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.extras.hub.exports.forms import FORMS, default_form, export_form
from realmctl.extras.ir.labelled import read_labelled
from realmctl.index import vectors
from stages.embed import Embed
from stages.eval_em import EvalEm
from tests.fixtures.blocks import make_blocks


@pytest.fixture(scope="module")
def embeddings(chain):
    return Embed(blocks=chain.blocks, retriever=chain.retriever, dtype="float16").make(chain.folder / "half")


@pytest.fixture(scope="module")
def scores(chain):
    return EvalEm(blocks=chain.blocks, retrieval="bm25", questions=chain.questions, hits=6).make(
        chain.folder / "bm25-scores"
    )


def test_blocks_become_a_table_that_dpr_and_chunk_read(chain, tmp_path):
    made = export_form(chain.blocks, tmp_path / "psgs.tsv", "psgs", None)
    records = list(Corpus(chain.blocks))
    with (tmp_path / "psgs.tsv").open(newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))  # as DPR reads it
    assert rows == [["id", "text", "title"], *([r.id, r.text, r.title] for r in records)]
    ours = [(raw.id, raw.text, raw.title) for raw in documents([tmp_path / "psgs.tsv"])]
    assert ours == [(r.id, r.text, r.title) for r in records]
    assert made["passages"] == 40 and made["form"] == "psgs" == default_form("blocks")
    assert not list(tmp_path.glob(".psgs*"))


def test_quotes_tabs_and_line_breaks_stay_in_one_row(tmp_path):
    blocks = make_blocks(tmp_path / "blocks", {'A "quoted"\ttitle': [['He said "no".\nThen\tleft.']]})
    export_form(blocks, tmp_path / "p.tsv", "psgs", None)
    (raw,) = documents([tmp_path / "p.tsv"])
    assert (raw.title, raw.text) == ('A "quoted" title', 'He said "no". Then left.')


@pytest.mark.parametrize("rows_at_once", [7, 10**6])
def test_vectors_with_ids_for_any_library(chain, embeddings, tmp_path, monkeypatch, rows_at_once):
    monkeypatch.setattr(vectors, "ROWS_PER_CHUNK", rows_at_once)
    half = np.load(embeddings.file("embeddings.npy"))
    ids = [record.id for record in Corpus(chain.blocks)]
    made = export_form(embeddings, tmp_path / "faiss", "vectors", chain.blocks)
    found = np.load(tmp_path / "faiss/vectors.npy", allow_pickle=False)
    assert found.dtype == np.float32 and np.array_equal(found, half.astype(np.float32)) and half.dtype == np.float16
    assert (tmp_path / "faiss/ids.txt").read_text().splitlines() == ids
    assert (made["vectors"], made["width"]) == found.shape == (40, 8)
    export_form(embeddings, tmp_path / "corpus.pkl", "tevatron", chain.blocks)
    with (tmp_path / "corpus.pkl").open("rb") as file:
        array, names = pickle.load(file)  # as Tevatron reads it
    assert array.dtype == np.float32 and np.array_equal(array, found) and names == ids


def test_scores_become_training_files_of_dpr(scores, tmp_path):
    retrieved = json.loads(scores.file("retrieved.json").read_text())
    export_form(scores, tmp_path / "reader.json", "dpr-reader", None)
    assert json.loads((tmp_path / "reader.json").read_text()) == retrieved
    made = export_form(scores, tmp_path / "retriever.json", "dpr-retriever", None)
    found = {question.question: question for question in read_labelled(tmp_path / "retriever.json")}
    expected = [entry for entry in retrieved if any(ctx["has_answer"] for ctx in entry["ctxs"])]
    assert (made["questions"], made["without_positives"]) == (len(expected), len(retrieved) - len(expected))
    assert len(found) == len(expected) > 0
    for entry in expected:
        for passages, wanted in (
            (found[entry["question"]].positives, True),
            (found[entry["question"]].negatives, False),
        ):
            texts = [(ctx["title"], ctx["text"]) for ctx in entry["ctxs"] if ctx["has_answer"] is wanted]
            assert [(passage.title, passage.text) for passage in passages] == texts


def test_what_does_not_fit_is_refused(chain, embeddings, scores, tmp_path):
    out = tmp_path / "out"
    other = make_blocks(tmp_path / "other", {"A": [["Another text."]]})
    for error, message, call in (
        (ConfigError, "vectors or parquet or tevatron", (embeddings, out, "psgs", None)),
        (ConfigError, "--blocks", (embeddings, out, "vectors", None)),
        (ConfigError, "--blocks", (scores, out, "dpr-reader", chain.blocks)),
        (MismatchError, "vectors|embeddings", (embeddings, out, "vectors", other)),
        (ConfigError, None, (chain.blocks, tmp_path, "psgs", None)),
        (ConfigError, None, (chain.blocks, chain.blocks.path / "x", "psgs", None)),
    ):
        with pytest.raises(error, match=message):
            export_form(*call)
    assert not out.exists()


def test_an_error_leaves_nothing_behind(chain, tmp_path, monkeypatch):
    def fail(path, *_):
        path.write_text("half")
        raise OSError("disk full")

    monkeypatch.setitem(FORMS, "psgs", type(FORMS["psgs"])("blocks", lambda blocks, _, path: fail(path)))
    with pytest.raises(OSError, match="disk full"):
        export_form(chain.blocks, tmp_path / "p.tsv", "psgs", None)
    assert not list(tmp_path.iterdir())


def test_scores_without_retrieval_have_no_training_file(scores, tmp_path, monkeypatch):
    monkeypatch.setitem(scores.manifest.files, "retrieved.json", scores.manifest.files["retrieved.json"])
    monkeypatch.delitem(scores.manifest.files, "retrieved.json")
    from realmctl.extras.hub.exports.dpr import write_reader_training

    with pytest.raises(InputError, match="without retrieval"):
        write_reader_training(scores, tmp_path / "r.json")
