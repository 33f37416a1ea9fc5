"""The newest blocks with an index of this retriever are served; an edit equals a rebuild, or leaves what is served."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from realmctl.artifacts import open_artifact, require_descent
from realmctl.artifacts.series import pin
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, MismatchError, QualityError
from realmctl.extras.serve import versions as serving
from realmctl.index.vectors import open_vectors
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.revise import Revise
from tests.extras.serve.conftest import LENGTH
from tests.fixtures.chain import make_index
from tests.fixtures.retriever import make_retriever


def revise(workspace, document="d3"):
    """The next blocks, without vectors and index: what a revision that was killed leaves."""
    edits = workspace / "edits.jsonl"
    edits.write_text(json.dumps({"op": "remove", "id": document}) + "\n")
    return Revise(blocks=open_artifact(workspace / "blocks"), edits=edits, workers=1).make(workspace / "blocks")


def fits(newest, served):
    """Whether these blocks are the newest, and the index is of them. An edit that is undone has the model's own index again."""
    return newest.blocks == served.blocks and newest.index.lineage["blocks"] == served.blocks.content


def test_blocks_without_an_index_are_not_served(workspace, versions, capfd):
    first = versions.newest()
    assert first.blocks.path.name == "v1" and first.name == f"v1-{first.blocks.content[:12]}"
    revised = revise(workspace)
    assert versions.newest() == first and "has no index" in capfd.readouterr().err
    make_index(
        workspace, revised, make_retriever(workspace / "another", revised, seed=9)
    )  # not of the model's retriever
    assert versions.newest() == first
    index = make_index(workspace, revised, open_artifact(workspace / "model").part("retriever"))
    served = versions.newest()
    assert (served.blocks.content, served.index.content) == (revised.content, index.content)


def test_a_version_that_is_named_is_served_alone(workspace, versions):
    edited = versions.edit(versions.newest(), [{"op": "remove", "id": "d3"}]).version
    assert versions.newest() == edited
    first = replace(versions, blocks=workspace / "blocks" / "v1").newest()
    assert first.blocks.path.name == "v1"
    with pytest.raises(MismatchError, match="realmctl build-index"):
        replace(versions, blocks=revise(workspace, "d4").path).newest()


def test_edits_of_pinned_blocks_are_refused(workspace, versions):
    pin(open_artifact(workspace / "blocks"))
    with pytest.raises(ConfigError, match="pin --remove"):
        versions.check_edits(versions.newest())


def test_a_model_without_an_index_serves_the_newest_blocks(workspace, versions):
    revised = revise(workspace)
    served = replace(versions, model=None).newest()
    assert served.index is None and served.blocks.path == revised.path
    with pytest.raises(InputError):
        replace(versions, model=None, blocks=workspace / "nothing").newest()


def test_an_edit_equals_a_rebuild(workspace, versions):
    edits = [
        {"op": "update", "id": "d1", "text": "Ben Mott went away. Nobody knows where he lives."},
        {"op": "remove", "id": "d5"},
    ]
    before = versions.newest()
    versions.check_edits(before)
    made = versions.edit(before, edits)
    documents = {one["id"]: one for one in map(json.loads, (workspace / "corpus.jsonl").read_text().splitlines())}
    documents["d1"]["text"] = edits[0]["text"]
    del documents["d5"]
    corpus = workspace / "edited.jsonl"
    corpus.write_text("".join(f"{json.dumps(one)}\n" for one in documents.values()))
    blocks = Chunk(
        corpus=(corpus,), tokenizer=str(before.blocks.path / "tokenizer"), max_wordpieces=LENGTH, workers=1
    ).make(workspace / "rebuilt")
    assert made.version.blocks.content == blocks.content
    vectors = Embed(
        blocks=blocks, retriever=open_artifact(workspace / "model").part("retriever"), precision="fp32"
    ).make(workspace / "e")
    np.testing.assert_allclose(
        open_vectors(made.version.index.file("vectors.npy")), np.load(vectors.file("embeddings.npy")), atol=1e-5
    )
    former = {(r.title, r.text) for r in Corpus(before.blocks)}
    unchanged = sum((r.title, r.text) in former for r in Corpus(blocks))
    assert (made.taken_over, made.embedded) == (unchanged, len(Corpus(blocks)) - unchanged)
    assert made.version.index.settings["type"] == before.index.settings["type"]


def test_an_edit_made_undone_and_made_again_is_a_new_version_each_time(versions):
    text = Corpus(versions.newest().blocks).block(0).text
    first = versions.newest()
    former = " ".join(r.text for r in Corpus(first.blocks) if r.document == "d0")
    served = [first]
    for new in ("Ada Lorn lives.", former, "Ada Lorn lives."):
        served.append(versions.edit(served[-1], [{"op": "update", "id": "d0", "text": new}]).version)
        assert fits(versions.newest(), served[-1])
    assert Corpus(served[2].blocks).block(0).text == text
    assert served[2].blocks.content == first.blocks.content and served[3].blocks.content == served[1].blocks.content
    assert len({version.name for version in served}) == 4


def test_an_id_that_is_corrected_has_its_index(versions):
    """The same text under another id has the same vectors, and is not the same blocks."""
    text = "Zed Quill was born in Velford."
    served = versions.newest()
    for edit in (
        {"op": "add", "id": "wrong", "title": "Zed", "text": text},
        {"op": "remove", "id": "wrong"},
        {"op": "add", "id": "right", "title": "Zed", "text": text},
    ):
        served = versions.edit(served, [edit]).version
        assert fits(versions.newest(), served)


def test_build_index_knows_the_blocks_of_its_vectors(workspace):
    """The same from the command line: add, remove, and add under another id."""
    model = open_artifact(workspace / "model").part("retriever")
    for number, edit in enumerate(
        (
            {"op": "add", "id": "wrong", "title": "Zed", "text": "Zed Quill."},
            {"op": "remove", "id": "wrong"},
            {"op": "add", "id": "right", "title": "Zed", "text": "Zed Quill."},
        )
    ):
        edits = workspace / f"{number}.jsonl"
        edits.write_text(json.dumps(edit))
        blocks = Revise(blocks=workspace / "blocks", edits=edits, workers=1).make(workspace / "blocks")
        index = make_index(workspace, blocks, model)
        require_descent(index, blocks)


def contents(workspace):
    return {path.relative_to(workspace) for path in workspace.rglob("*")} - {
        Path(name) / ".lock" for name in ("blocks", "embeddings", "index")
    }


def broken(*_):
    raise QualityError("recall 0.1 is below 0.9")


@pytest.mark.parametrize("stage", [Revise, Embed, BuildIndex])
def test_an_edit_that_fails_half_way_leaves_nothing(workspace, versions, monkeypatch, stage):
    before, edit, there = versions.newest(), {"op": "remove", "id": "d2"}, contents(workspace)
    with monkeypatch.context() as patch:
        patch.setattr(stage, "run", broken)
        with pytest.raises(QualityError):
            versions.edit(before, [edit])
    assert contents(workspace) == there and versions.newest() == before
    made = versions.edit(before, [{"op": "remove", "id": "d3"}]).version  # another edit
    assert versions.newest() == made and made.blocks.path.name == "v2"
    assert "d3" not in {r.document for r in Corpus(made.blocks)} and "d2" in {r.document for r in Corpus(made.blocks)}


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_edit_whose_publication_fails_leaves_nothing(workspace, versions, monkeypatch, number):
    before, there, calls, plain = versions.newest(), contents(workspace), [], serving.adopt

    def full(series, made):
        calls.append(made)
        if len(calls) > number:
            raise OSError(errno.ENOSPC, "No space left on device")
        return plain(series, made)

    with monkeypatch.context() as patch:
        patch.setattr(serving, "adopt", full)
        with pytest.raises(OSError, match="space"):
            versions.edit(before, [{"op": "remove", "id": "d2"}])
    assert versions.newest() == before
    assert contents(workspace) - there <= {Path(name) / ".last" for name in ("embeddings", "index")}
    assert versions.edit(before, [{"op": "remove", "id": "d3"}]).version == versions.newest()


def test_an_unfinished_run_of_embed_is_not_in_the_way_of_an_edit_and_not_lost(workspace, versions, monkeypatch):
    """Also: what is finished later is the newer version, although it began earlier."""
    embed = Embed(
        blocks=workspace / "blocks", retriever=open_artifact(workspace / "model").part("retriever"), dtype="float16"
    )

    def killed(self, out):
        (out.scratch("progress") / "rows").write_text("some")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Embed, "run", killed)
        with pytest.raises(KeyboardInterrupt):
            embed.make(workspace / "embeddings")
    assert (workspace / "embeddings" / "v2.partial").is_dir()
    edited = versions.edit(versions.newest(), [{"op": "remove", "id": "d2"}]).version
    assert versions.newest() == edited and (workspace / "embeddings" / "v2.partial").is_dir()
    made = embed.make(workspace / "embeddings")
    assert made.path == open_artifact(workspace / "embeddings").path
    assert versions.newest() == edited


def test_what_cannot_be_edited(workspace, versions):
    before = versions.newest()
    everything = [{"op": "remove", "id": f"d{number}"} for number in range(20)]
    with pytest.raises(InputError, match="block"):
        versions.edit(before, everything)
    with pytest.raises(ConfigError, match="--model"):
        replace(versions, model=None).check_edits(before)
    assert versions.newest() == before
