"""qa-model.json, retriever.json, blocks.json: what is read, what is refused, and artifacts made before they existed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from realmctl.artifacts import Artifact, Origin, open_artifact, require_titles, writing
from realmctl.artifacts.description import (
    QaModelDescription,
    RetrieverDescription,
    describe_qa_model,
    describe_retriever,
    has_titles,
    read_description,
    write_description,
)
from realmctl.errors import InputError, MismatchError

DENSE = QaModelDescription(
    answerer="extractive", searcher="dense", objective="paper", reader_beam=5, reader_length=320, span_width=10
)
CLOSED = QaModelDescription(
    answerer="closed-book", searcher=None, objective="closed-book", reader_beam=0, reader_length=40, span_width=4
)


def made(folder: Path, kind: str, files: dict[str, Any], settings: dict[str, Any], metrics: dict[str, Any]) -> Artifact:
    """An artifact with some small files."""
    with writing(folder / kind, Origin(kind, "test", 1, settings, {})) as out:
        out.metrics.update(metrics)
        for name, value in files.items():
            out.file(name).write_text(json.dumps(value))
    return open_artifact(folder / kind)


@pytest.mark.parametrize("description", [DENSE, CLOSED], ids=["dense", "closed"])
def test_what_is_written_is_read(tmp_path, description):
    write_description(tmp_path / "qa-model.json", description)
    assert read_description(tmp_path / "qa-model.json", QaModelDescription) == description


def test_fields_of_later_versions_are_passed_over(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({**dataclasses.asdict(DENSE), "later": [1]}))
    assert read_description(tmp_path / "x.json", QaModelDescription) == DENSE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reader_beam": "5"}, "reader_beam is '5', where a value of type int is needed"),
        ({"reader_beam": True}, "reader_beam is True"),
        ({"searcher": 3}, "searcher is 3, where a value of type str or null is needed"),
        ({"searcher": "absent"}, None),
    ],
    ids=str,
)
def test_types_are_checked(tmp_path, change, message):
    path = tmp_path / "qa-model.json"
    path.write_text(json.dumps({**dataclasses.asdict(DENSE), **change}))
    if message is None:
        assert read_description(path, QaModelDescription).searcher == "absent"
        return
    with pytest.raises(InputError, match=rf"qa-model\.json does not describe its artifact \({message}.*make the"):
        read_description(path, QaModelDescription)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"towers": "shared"}', None], ids=str)
def test_damage_is_an_input_error(tmp_path, text):
    path = tmp_path / "retriever.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=r"retriever\.json does not describe its artifact"):
        read_description(path, RetrieverDescription)


def test_an_older_qa_model_is_described_by_its_settings(tmp_path):
    settings = {"reader_beam": 5, "reader_length": 320, "span_width": 10, "objective": "paper"}
    assert describe_qa_model(made(tmp_path, "qa-model", {}, settings, {})) == DENSE
    sparse = made(tmp_path, "qa-model", {}, {**settings, "retrieval": "bm25"}, {})
    assert describe_qa_model(sparse) == dataclasses.replace(DENSE, searcher="bm25")
    closed = {"reader_beam": 5, "reader_length": 40, "span_width": 4, "retrieval": "none"}
    assert describe_qa_model(made(tmp_path, "qa-model", {}, closed, {})) == CLOSED
    with pytest.raises(InputError, match="settings do not say how it answers"):
        describe_qa_model(made(tmp_path, "qa-model", {}, {"reader_beam": 5}, {}))


def test_the_file_wins_over_the_settings(tmp_path):
    settings = {"reader_beam": 1, "reader_length": 2, "span_width": 3, "retrieval": "none"}
    files = {"qa-model.json": dataclasses.asdict(DENSE)}
    assert describe_qa_model(made(tmp_path, "qa-model", files, settings, {})) == DENSE


def test_the_block_retriever_of_an_older_retriever_is_in_its_metrics(tmp_path):
    file = {"towers": "query-only", "projection": 8}
    older = made(tmp_path, "retriever", {"retriever.json": file}, {}, {"block_retriever": "abc"})
    assert describe_retriever(older).block_retriever == "abc"
    newer = made(tmp_path, "retriever", {"retriever.json": {**file, "block_retriever": "def"}}, {}, {})
    assert describe_retriever(newer).block_retriever == "def"
    assert describe_retriever(made(tmp_path, "retriever", {"retriever.json": file}, {}, {})).block_retriever is None


def test_titles_of_imported_blocks(tmp_path):
    for files, metrics, titles in (
        ({"blocks.json": {"titles": False}}, {}, False),
        ({"blocks.json": {"titles": True}}, {}, True),
        ({}, {"titles": False}, False),
        ({}, {"titles": True}, True),
        ({}, {}, True),
    ):
        blocks = made(tmp_path, "blocks", files, {}, metrics)
        assert has_titles(blocks) is titles
        if titles:
            require_titles(blocks)
        else:
            with pytest.raises(MismatchError, match="without titles"):
                require_titles(blocks)
