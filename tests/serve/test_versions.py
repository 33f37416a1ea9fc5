"""Which version is served: the newest blocks that have an index of this retriever."""

from __future__ import annotations

import json

import pytest

from realmctl.artifacts import open_artifact
from realmctl.errors import InputError, MismatchError
from realmctl.serve.editor import Editor
from realmctl.serve.versions import Places
from stages.revise import Revise
from tests.fixtures.chain import make_index
from tests.fixtures.retriever import make_retriever


@pytest.fixture
def places(workspace):
    return Places(workspace / "blocks", workspace / "index", open_artifact(workspace / "model").part("index"))


def revise(workspace, document="d3"):
    """The next blocks, without vectors and index: what a revision that was killed leaves."""
    edits = workspace / "edits.jsonl"
    edits.write_text(json.dumps({"op": "remove", "id": document}) + "\n")
    return Revise(blocks=open_artifact(workspace / "blocks"), edits=edits, workers=1).make(workspace / "blocks")


def test_blocks_without_an_index_are_not_served(workspace, places, capfd):
    first = places.newest()
    assert first.blocks.path.name == "v1" and first.name == f"v1-{first.blocks.content[:12]}"
    revised = revise(workspace)
    assert places.newest() == first and "has no index" in capfd.readouterr().err
    make_index(
        workspace, revised, make_retriever(workspace / "another", revised, seed=9)
    )  # not of the model's retriever
    assert places.newest() == first
    index = make_index(workspace, revised, open_artifact(workspace / "model").part("retriever"))
    served = places.newest()
    assert (served.blocks.content, served.index.content) == (revised.content, index.content)


def test_a_version_that_is_named_is_served_alone(workspace, places):
    editor = Editor(open_artifact(workspace / "model"), workspace / "embeddings", workspace / "index")
    edited = editor.make(places.newest(), [{"op": "remove", "id": "d3"}]).version
    assert places.newest() == edited
    first = Places(workspace / "blocks" / "v1", workspace / "index", places.own).newest()
    assert first.blocks.path.name == "v1"
    with pytest.raises(MismatchError, match="realmctl build-index"):
        Places(revise(workspace, "d4").path, workspace / "index", places.own).newest()


def test_a_model_without_an_index_serves_the_newest_blocks(workspace):
    revised = revise(workspace)
    served = Places(workspace / "blocks", workspace / "index", None).newest()
    assert served.index is None and served.blocks.path == revised.path
    with pytest.raises(InputError):
        Places(workspace / "nothing", workspace / "index", None).newest()
