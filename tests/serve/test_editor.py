"""An edit through the server equals a rebuild of the edited corpus, and one that fails leaves the version that is served."""

from __future__ import annotations

import json

import numpy as np
import pytest

from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, QualityError
from realmctl.index.vectors import open_vectors
from realmctl.serve.editor import Editor
from realmctl.serve.versions import Places
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from tests.serve.conftest import LENGTH


@pytest.fixture
def places(workspace):
    return Places(workspace / "blocks", workspace / "index", open_artifact(workspace / "model").part("index"))


@pytest.fixture
def editor(workspace):
    return Editor(open_artifact(workspace / "model"), workspace / "embeddings", workspace / "index")


def test_an_edit_equals_a_rebuild(workspace, places, editor):
    edits = [
        {"op": "update", "id": "d1", "text": "Ben Mott went away. Nobody knows where he lives."},
        {"op": "remove", "id": "d5"},
    ]
    before = places.newest()
    editor.check(before)
    made = editor.make(before, edits)
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


def test_an_edit_made_undone_and_made_again_is_a_new_version_each_time(places, editor):
    text = Corpus(places.newest().blocks).block(0).text
    first = places.newest()
    former = " ".join(r.text for r in Corpus(first.blocks) if r.document == "d0")
    versions = [first]
    for new in ("Ada Lorn lives.", former, "Ada Lorn lives."):
        versions.append(editor.make(versions[-1], [{"op": "update", "id": "d0", "text": new}]).version)
        assert places.newest() == versions[-1]
    assert Corpus(versions[2].blocks).block(0).text == text
    assert (
        versions[2].blocks.content == first.blocks.content and versions[3].blocks.content == versions[1].blocks.content
    )
    assert len({version.name for version in versions}) == 4


def broken(*_):
    raise QualityError("recall 0.1 is below 0.9")


@pytest.mark.parametrize("stage", [Embed, BuildIndex])
def test_an_edit_that_fails_half_way_leaves_the_former_version(places, editor, monkeypatch, stage):
    before, edit = places.newest(), {"op": "remove", "id": "d2"}
    with monkeypatch.context() as patch:
        patch.setattr(stage, "run", broken)
        with pytest.raises(QualityError):
            editor.make(before, [edit])
    assert places.newest() == before
    made = editor.make(before, [edit]).version
    assert places.newest() == made and "d2" not in {r.document for r in Corpus(made.blocks)}


def test_what_cannot_be_edited(workspace, places, editor):
    before = places.newest()
    everything = [{"op": "remove", "id": f"d{number}"} for number in range(20)]
    with pytest.raises(InputError, match="leave no block"):
        editor.make(before, everything)
    with pytest.raises(ConfigError, match="--model"):
        Editor(None, workspace / "embeddings", workspace / "index").check(before)
    assert places.newest() == before
