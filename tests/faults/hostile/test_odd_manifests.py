"""Manifests with odd values and a valid seal: each is refused with one paragraph, or does no harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from realmctl.artifacts import MANIFEST, open_artifact
from realmctl.artifacts.manifest import MAX_JSON_DEPTH, MAX_MANIFEST_BYTES
from realmctl.errors import InputError, MismatchError
from tests.faults.tampering import edit_manifest, overwrite
from tests.fixtures.small_stages import Child, Model, Plain

HASH = "0" * 64


@pytest.fixture
def plain(tmp_path) -> Path:
    return Plain().make(tmp_path / "plain").path


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


ODD: dict[str, Any] = {
    "kind": [None, 7, "", "../x", "a\nb", [], "x" * 300],
    "stage": [None, 7, "", "\x1b[2J"],
    "stage_version": [None, True, 1.0, "1", -1, 10**30],
    "settings": [None, [], "x", {"a": nested(MAX_JSON_DEPTH)}, {"a": "\ud800"}, {"\ud800": 1}],
    "inputs": [None, [], {"a": None}, {"a": 1}, {"a": {"b": "c"}}, {"a": [1]}, {"a": True}],
    "lineage": [None, [], {"a": 1}, {"a": "short"}, {"a/b": HASH}, {"a": HASH.upper() + "A"}],
    "recipe": [None, 1, HASH],
    "content": [None, 1, HASH, {}],
    "files": [
        None,
        [],
        {"a": None},
        {"a": {}},
        {"a": {"bytes": 1}},
        {"a": {"bytes": -1, "sha256": HASH}},
        {"a": {"bytes": True, "sha256": HASH}},
        {"a": {"bytes": 1.5, "sha256": HASH}},
        {"a": {"bytes": 10**30, "sha256": HASH}},
        {"a": {"bytes": 1, "sha256": 7}},
        {"a": {"bytes": 1, "sha256": "g" * 64}},
        {"a": {"bytes": 1, "sha256": HASH, "more": 1}},
        "text.txt",
    ],
    "parts": [
        None,
        [],
        {"a": None},
        {"a": "x"},
        {"text.txt": HASH},
        {"deep": HASH},
        {f"p{n}": HASH for n in range(65)},
        {"missing": HASH},
        {"manifest.json": HASH},
    ],
    "metrics": [None, [], 1, {"a": nested(MAX_JSON_DEPTH)}],
    "realmctl": [None, 1, ""],
    "time": [None, 0, "yesterday", ""],
    "seconds": [None, "1", True, -1, 10**400],
    "host": [None, 1, "a\nb"],
    "format": [None, "1", 1.0, True, 0, -1, 2, 99],
    "more": [1],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in ODD.items() for value in values],
    ids=lambda value: str(value)[:20] if isinstance(value, str | int) else None,
)
def test_an_odd_manifest_is_one_paragraph_and_no_traceback(small, plain, field, value):
    edit_manifest(plain, lambda manifest: manifest.update({field: value}))
    for command in ("verify", "show"):
        code, _, error = small(command, plain)
        assert code in (3, 4) and error.count("\n") == 1
    code, out, _ = small("ls", plain.parent)
    assert code == 0 and "damaged" in out


@pytest.mark.parametrize("field", sorted(ODD.keys() - {"more"}))
def test_a_manifest_that_lacks_a_field_is_refused(plain, field):
    edit_manifest(plain, lambda manifest: manifest.pop(field))
    with pytest.raises(InputError, match=r"manifest"):
        open_artifact(plain)


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe",
        b'{"format": 1, "seal": NaN}',
        b'{"a":' * 50_000,
        b"[" * 50_000,
        b'{"seal": 1e999}',
        b"9" * 5000,
        b'{"format": ' + b"9" * 5000 + b"}",
        b" " * (MAX_MANIFEST_BYTES + 1),
        b'{"format": 1, "format": 1}',
    ],
    ids=lambda text: str(text[:12]),
)
def test_a_manifest_that_is_no_manifest_is_one_paragraph(small, plain, text):
    overwrite(plain / MANIFEST, text)
    for command in ("verify", "show"):
        code, _, error = small(command, plain)
        assert code == 3 and error.count("\n") == 1 and len(error) < 1000


@pytest.mark.parametrize("number", [0, -1, 2, 99])
def test_another_format_says_what_to_do(plain, number):
    edit_manifest(plain, lambda manifest: manifest.update(format=number))
    with pytest.raises(MismatchError, match=f"format {number}") as error:
        open_artifact(plain)
    assert error.value.exit_code == 4


def test_an_input_that_names_its_own_content_ends_the_tree(small, plain):
    own = open_artifact(plain).content
    edit_manifest(plain, lambda manifest: manifest["inputs"].update(itself=own), hashes=True)
    code, out, _ = small("show", plain)
    assert code == 0 and out.count("itself: ") == 1


def test_a_tree_of_too_many_ancestors_is_refused(small, tmp_path, monkeypatch):
    monkeypatch.setattr("realmctl.artifacts.catalogue.MAX_ANCESTORS", 3)
    child = Child(plain=Plain().make(tmp_path / "w/plain")).make(tmp_path / "w/child")
    assert small("show", child.path)[0] == 0
    Child(plain=Plain(text="b").make(tmp_path / "w/plain"), other=child).make(tmp_path / "w/child")
    assert small("show", tmp_path / "w/child")[0] == 3


def test_parts_of_parts_have_a_limit(tmp_path, monkeypatch):
    child = Child(plain=Plain().make(tmp_path / "plain")).make(tmp_path / "child")
    model = Model(child=child).make(tmp_path / "model")
    monkeypatch.setattr("realmctl.artifacts.artifact.MAX_PART_DEPTH", 0)
    with pytest.raises(InputError, match="parts of parts"):
        open_artifact(model.path)


def test_control_characters_of_a_setting_do_not_reach_the_terminal(small, tmp_path):
    made = Plain(text="\x1b[2Jgone").make(tmp_path / "plain")
    code, out, _ = small("show", made.path)
    assert code == 0 and "\x1b" not in out and "\\x1b[2Jgone" in out
