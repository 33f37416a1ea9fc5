"""Models over one version after another: the weights are read once, and the answers are those of models opened anew."""

from __future__ import annotations

import dataclasses
import json
import shutil
from types import SimpleNamespace

import pytest

import realmctl
from realmctl.artifacts import open_artifact
from realmctl.errors import ConfigError, MismatchError
from realmctl.extras.serve.messages import Ask, Search
from realmctl.extras.serve.models import open_models
from realmctl.retrieval.search.searcher import Searcher
from stages.revise import Revise
from tests.extras.serve.conftest import QUESTION, series
from tests.fixtures.chain import baseline, make_index
from tests.fixtures.retriever import make_retriever

EDIT = {"op": "update", "id": "d0", "text": "Ada Lorn was born in Nowhere."}


def opened(workspace, **changed):
    given = {"qa_model": workspace / "qa-model", "model": workspace / "model", "closed_book": None, **changed}
    return open_models(**given, **series(workspace))


def search_alone(workspace):
    return {"qa_model": None, "model": None, "retriever": workspace / "retriever"}


def edited(models, versions):
    versions.check_edits(models.version)
    models.check_edits()
    return versions.edit(models.version, [EDIT]).version


@pytest.fixture(scope="module")
def bm25(made_chain):
    return baseline(made_chain, "bm25", steps=2).make(made_chain.folder.parent / "serve-bm25")


@pytest.fixture(scope="module")
def closed_book(made_chain):
    return baseline(made_chain, "none", steps=2).make(made_chain.folder.parent / "serve-closed-book")


def test_an_edit_reads_no_weights_again(workspace):
    models, versions = opened(workspace)
    after = models.over(edited(models, versions))
    assert after.qa.answerer.reader is models.qa.answerer.reader
    assert after.qa.searcher.retriever is models.qa.searcher.retriever
    assert after.filler.reader is models.filler.reader
    assert after.qa.searcher.index is after.filler.searcher.index is not models.filler.searcher.index
    fresh, _ = opened(workspace)
    assert fresh.version == after.version and fresh.row_of == after.row_of
    assert after.qa.ask(QUESTION, 3) == fresh.qa.ask(QUESTION, 3)
    assert models.corpus[0].text != after.corpus[0].text == EDIT["text"]  # the former still answers


@pytest.mark.parametrize("model", [True, False])
def test_bm25_follows_an_edit(workspace, bm25, model):
    models, versions = opened(workspace, qa_model=bm25.path, **({} if model else {"model": None}))
    version = edited(models, versions)
    assert (version.index is None) is not model
    after = models.over(version)
    fresh, _ = opened(workspace, qa_model=bm25.path, **({} if model else {"model": None}))
    assert after.qa.ask(QUESTION, 3) == fresh.qa.ask(QUESTION, 3)
    assert after.qa.search("Nowhere", 1)[0].row == 0
    assert models.qa.search("Nowhere", 1) == []  # no former block has the word


@pytest.mark.parametrize("dense", [True, False])
def test_a_search_needs_no_model_that_reads_and_follows_an_edit(workspace, dense):
    retriever = {"retriever": workspace / "retriever"} if dense else {}
    models, versions = opened(workspace, qa_model=None, model=None, **retriever)
    search = realmctl.load_search(workspace, method=None if dense else "bm25")
    expected = search.search(QUESTION, 4)
    [reply] = models.search([Search(query=QUESTION, top=4)])
    assert reply.search == search.profile.told() and reply.search["method"] == ("hybrid" if dense else "bm25")
    assert [hit.block for hit in reply.hits] == [hit.block.id for hit in expected]
    assert [hit.score for hit in reply.hits] == pytest.approx([hit.score for hit in expected], rel=1e-5)
    with pytest.raises(ConfigError, match="Search instead"):
        models.ask([Ask(question=QUESTION)])
    version = edited(models, versions)
    [after] = models.over(version).search([Search(query=EDIT["text"], top=4)])
    assert (version.index is None) is not dense and after.version != reply.version
    fresh, _ = opened(workspace, qa_model=None, model=None, **retriever)
    assert fresh.search([Search(query=EDIT["text"], top=4)]) == [after]
    assert EDIT["text"] in [block.text for block in fresh.corpus]


def test_the_newest_index_decides_with_which_retriever_it_is_searched(workspace):
    """`adapt` leaves a second retriever with its index; then `index-docs` makes other documents searchable by the first."""
    first, blocks = (open_artifact(workspace / kind / "v1") for kind in ("retriever", "blocks"))
    make_index(workspace, blocks, make_retriever(workspace / "retriever", blocks, seed=1))
    edits = workspace / "edits.jsonl"
    edits.write_text(json.dumps(EDIT) + "\n")
    revised = Revise(blocks=blocks, edits=edits, workers=1).make(workspace / "blocks")
    make_index(workspace, revised, first)
    models, _ = opened(workspace, **search_alone(workspace))
    assert models.version.blocks.content == revised.content


def test_searches_that_wait_together_are_embedded_at_once(workspace, monkeypatch):
    models, _ = opened(workspace, **search_alone(workspace))
    searches = [Search(query=query, top=3, method="dense") for query in (QUESTION, "Nowhere", "A third one")]
    alone = [models.search([one])[0] for one in searches]
    searcher, batches = models.searches.by("dense").searcher, []
    nearest = searcher.nearest
    monkeypatch.setattr(searcher, "nearest", lambda tokens, k: batches.append(len(tokens)) or nearest(tokens, k))
    for one, other in zip(alone, models.search(searches), strict=True):
        assert [hit.block for hit in one.hits] == [hit.block for hit in other.hits]
        assert [hit.score for hit in one.hits] == pytest.approx([hit.score for hit in other.hits], rel=1e-4)
    assert batches == [3]


def test_models_that_read_search_too(workspace):
    models, _ = opened(workspace)
    [reply] = models.search([Search(query=QUESTION, top=2, method="dense")])
    assert [hit.block for hit in reply.hits] == [hit.block.id for hit in models.filler.search(QUESTION, 2)]


@pytest.mark.parametrize("model", [False, True])
def test_every_method_of_search_is_there_and_hybrid_is_that_of_the_command(workspace, model):
    models, versions = opened(workspace, **({} if model else search_alone(workspace)))
    assert models.searches.names == ["hybrid", "dense", "bm25"]
    for method in models.searches.names:
        made_by = {"retriever": workspace / "model"} if model and method != "bm25" else {}
        expected = realmctl.load_search(workspace, method=method, **made_by).search(QUESTION, 4)
        [reply] = models.search([Search(query=QUESTION, top=4, method=method)])
        assert [hit.block for hit in reply.hits] == [hit.block.id for hit in expected]
        rounding = 5e-3 if model else 1e-5  # a model's questions may be embedded in bfloat16
        assert [hit.score for hit in reply.hits] == pytest.approx([hit.score for hit in expected], rel=rounding)
    with pytest.raises(ConfigError, match="bm25, not by wrong"):
        models.search([Search(query=QUESTION, method="wrong")])
    version = edited(models, versions)
    [after] = models.over(version).search([Search(query=EDIT["text"], top=1, method="bm25")])
    assert after.hits[0].text == EDIT["text"]


def test_examples_of_a_search_are_titles(workspace):
    models, _ = opened(workspace, **search_alone(workspace))
    titles = {block.title for block in models.corpus}
    assert len(models.examples()) == 3 and set(models.examples()) <= titles
    corpus = Titled(["[", "", "10", "東京", "ls"])
    assert dataclasses.replace(models, corpus=corpus).examples() == ["Words of block", "東京", "ls"]


class Titled(list):
    """Blocks with these titles and one text."""

    def block(self, row):
        return SimpleNamespace(title=self[row], text="Words of block")


def test_rows_of_a_document(workspace):
    models, _ = opened(workspace)
    records = list(models.corpus)
    assert any(sum(r.document == one.document for r in records) > 1 for one in records)
    for row, record in enumerate(records):
        assert list(models.rows_of_document(row)) == [
            n for n, other in enumerate(records) if other.document == record.document
        ]
        assert models.row_of[record.id] == row


def test_a_searcher_that_stays_with_its_blocks_allows_no_edit(workspace, monkeypatch):
    models, _ = opened(workspace)
    monkeypatch.setattr(type(models.qa.searcher), "over", Searcher.over)
    with pytest.raises(ConfigError, match="--allow-edits"):
        models.check_edits()
    with pytest.raises(ConfigError, match="DenseSearcher"):
        models.qa.searcher.over(models.version.blocks, None)


def test_a_model_without_retrieval_answers_beside(workspace, closed_book):
    models, _ = opened(workspace, closed_book=closed_book.path)
    assert models.closed_book.ask(QUESTION, 1).best.hit is None
    with pytest.raises(MismatchError, match="--retrieval none"):
        opened(workspace, closed_book=workspace / "qa-model")


def test_what_cannot_be_served(workspace, made_chain, tmp_path):
    with pytest.raises(ConfigError, match="--closed-book"):
        opened(workspace, qa_model=None, model=None, closed_book=workspace / "qa-model")
    with pytest.raises(MismatchError, match="qa-model"):
        opened(workspace, qa_model=workspace / "model")
    with pytest.raises(MismatchError, match="--model"):
        opened(workspace, model=workspace / "qa-model")
    shutil.rmtree(workspace / "blocks")
    shutil.copytree(made_chain.folder / "spans", workspace / "blocks")
    with pytest.raises(MismatchError):
        opened(workspace)
