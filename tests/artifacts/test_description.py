"""qa-model.json, blocks.json: what is read and what is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from realmctl.artifacts import Artifact, Origin, open_artifact, require_titles, writing
from realmctl.artifacts.description import (
    BlocksDescription,
    QaModelDescription,
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


def made(folder: Path, kind: str, files: dict[str, Any]) -> Artifact:
    """An artifact with some small files."""
    with writing(folder / kind, Origin(kind, "test", 1, {}, {})) as out:
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
    with pytest.raises(InputError, match=rf"qa-model\.json.*{message}"):
        read_description(path, QaModelDescription)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"towers": "shared"}', None], ids=str)
def test_damage_is_an_input_error(tmp_path, text):
    path = tmp_path / "blocks.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=r"blocks\.json"):
        read_description(path, BlocksDescription)


def test_titles_of_imported_blocks(tmp_path):
    for files, titles in (
        ({"blocks.json": {"titles": False}}, False),
        ({"blocks.json": {"titles": True}}, True),
        ({}, True),
    ):
        blocks = made(tmp_path, "blocks", files)
        assert has_titles(blocks) is titles
        if titles:
            require_titles(blocks)
        else:
            with pytest.raises(MismatchError, match="without titles"):
                require_titles(blocks)
