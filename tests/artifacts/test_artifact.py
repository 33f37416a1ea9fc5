"""Artifacts: their manifests and hashes, and that every damage is noticed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.artifacts import (
    Artifact,
    Origin,
    lineage_of,
    open_artifact,
    require_descent,
    require_same_vocabulary,
    verify,
    version_numbers,
    writing,
)
from realmctl.artifacts.manifest import MANIFEST, FileEntry, Manifest, read_manifest, sealed
from realmctl.errors import InputError, MismatchError
from tests.fixtures.small_stages import Child, Model, Plain


def state(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Artifact:
    return Plain(text="zwölf", tags=("a", "b")).make(tmp_path_factory.mktemp("made") / "plain")


@pytest.fixture
def copy(made, tmp_path) -> Path:
    shutil.copytree(made.path, tmp_path / "v1")
    for path in (tmp_path / "v1").rglob("*"):
        path.chmod(0o755)
    return tmp_path / "v1"


def test_a_manifest_says_it_all(made):
    manifest = json.loads((made.path / MANIFEST).read_text())
    assert set(manifest["files"]) == {"text.txt", "deep/er/copy.bin", "corpus.txt"}
    assert manifest["files"]["text.txt"]["bytes"] == len("zwölf".encode())
    assert manifest["settings"]["tags"] == ["a", "b"]
    assert (made.kind, made.metrics, made.lineage) == ("plain", {"length": 5}, {})
    assert {path.name for path in made.path.parent.iterdir()} == {"v1", ".lock", ".last"}
    assert not any(path.stat().st_mode & 0o222 for path in made.path.rglob("*") if path.is_file())


def test_recipe_covers_everything_that_changes_the_result():
    origin = Origin("k", "stage", 1, {"a": 1}, {"x": "hash"})
    changed = [
        Origin("k", "other", 1, {"a": 1}, {"x": "hash"}),
        Origin("k", "stage", 2, {"a": 1}, {"x": "hash"}),
        Origin("k", "stage", 1, {"a": 2}, {"x": "hash"}),
        Origin("k", "stage", 1, {"b": 1}, {"x": "hash"}),
        Origin("k", "stage", 1, {"a": 1}, {"x": "hush"}),
        Origin("k", "stage", 1, {"a": 1}, {"y": "hash"}),
        Origin("k", "stage", 1, {"a": 1}, {"x": "hash"}, {"z": "lineage"}),
    ]
    assert len({one.recipe for one in [origin, *changed]}) == 8


def test_content_is_the_files_and_nothing_else(tmp_path):
    first, second = (Plain(rate=rate).make(tmp_path / str(rate)) for rate in (0.1, 0.2))
    assert first.recipe != second.recipe and first.content == second.content
    assert Plain(text="other").make(tmp_path / "x").content != first.content


def test_every_changed_byte_of_a_manifest_is_noticed(copy):
    path = copy / MANIFEST
    text = path.read_bytes()
    for position in range(len(text)):
        flipped = text[position] ^ (0x01, 0x20, 0x80)[position % 3]
        path.write_bytes(text[:position] + bytes([flipped]) + text[position + 1 :])
        with pytest.raises((InputError, MismatchError)):
            read_manifest(copy)
    path.write_bytes(text)
    open_artifact(copy)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_edit_of_a_manifest_passes(made, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("edited")
    shutil.copytree(made.path, folder / "v1")
    text = (folder / "v1" / MANIFEST).read_bytes()
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 9, len(text))))
    edited = text[:start] + data.draw(st.binary(max_size=9)) + text[stop:]
    (folder / "v1" / MANIFEST).unlink()
    (folder / "v1" / MANIFEST).write_bytes(edited)
    if edited != text:
        with pytest.raises((InputError, MismatchError)):
            open_artifact(folder / "v1")


def test_every_changed_byte_of_the_data_is_noticed_by_verify(copy):
    for path in [copy / "text.txt", copy / "deep/er/copy.bin"]:
        data = path.read_bytes()
        for position in range(len(data)):
            path.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
            with pytest.raises(InputError, match="damaged"):
                verify(open_artifact(copy))
        path.write_bytes(data)
    verify(open_artifact(copy))


def test_truncated_missing_and_foreign_files_are_noticed_on_opening(copy):
    text = (copy / "text.txt").read_bytes()
    (copy / "text.txt").write_bytes(text[:-1])
    with pytest.raises(InputError, match=r"text\.txt"):
        open_artifact(copy)
    (copy / "text.txt").unlink()
    with pytest.raises(InputError, match=r"text\.txt"):
        open_artifact(copy)
    (copy / "text.txt").write_bytes(text)
    (copy / "deep" / "foreign").touch()
    with pytest.raises(InputError, match="deep/foreign"):
        open_artifact(copy)


def test_a_manifest_that_is_none(copy):
    for text in ["", "{}", "[]", "null", "{" * 100_000, '{"format": 1}', "\x00", '{"seal": NaN}']:
        (copy / MANIFEST).write_text(text)
        with pytest.raises(InputError):
            open_artifact(copy)


def test_a_manifest_written_anew_by_hand_is_noticed(copy):
    text = (copy / MANIFEST).read_text()
    manifest = json.loads(text)
    for edited in (
        json.dumps(manifest, indent=2),
        text.replace('"format": 1', '"format": 7,\n "format": 1'),
        text.replace("zw\\u00f6lf", "zw\u00f6lf"),
    ):
        (copy / MANIFEST).write_text(edited)
        assert edited != text and json.loads(edited) == manifest
        with pytest.raises(InputError, match="seal"):
            open_artifact(copy)


def test_a_newer_format_is_refused(copy):
    manifest = json.loads((copy / MANIFEST).read_text())
    manifest["format"] = 99
    (copy / MANIFEST).write_text(json.dumps(sealed(manifest)))
    with pytest.raises(MismatchError, match="format 99"):
        open_artifact(copy)


def test_metrics_that_are_no_json_are_made_so(tmp_path):
    import numpy as np

    with writing(tmp_path / "x", Origin("k", "s", 1, {}, {})) as out:
        out.metrics.update(a=np.float32(0.5), b=np.int64(3), c=float("nan"), d=[np.float64(1), float("inf")])
    assert open_artifact(tmp_path / "x").metrics == {"a": 0.5, "b": 3, "c": None, "d": [1.0, None]}


def test_names_of_files_are_known(made):
    assert made.has("text.txt") and not made.has("nothing")
    with pytest.raises(InputError, match="'nothing'"):
        made.file("nothing")
    with pytest.raises(MismatchError, match="index"):
        made.part("index")


@pytest.fixture
def model(tmp_path) -> Artifact:
    child = Child(plain=Plain().make(tmp_path / "plain")).make(tmp_path / "child")
    return Model(child=child).make(tmp_path / "model")


def test_parts_are_artifacts_of_their_own(model):
    part = model.part("plain")
    assert (part.kind, part.metrics, part.lineage) == ("plain", {"length": 4}, model.lineage)
    assert model.part("child").content == model.lineage["child"]
    assert set(model.manifest.files) == {"own.txt"}
    assert model.has("plain") and model.has("own.txt")
    everything = sum(len(data) for name, data in state(model.path).items() if not name.endswith(MANIFEST))
    assert verify(model) == everything


def test_damage_inside_a_part_is_noticed(model):
    path = model.path / "plain" / "text.txt"
    path.chmod(0o644)
    path.write_text("pert")
    open_artifact(model.path)
    with pytest.raises(InputError, match=r"plain/text\.txt"):
        verify(model)


def test_a_part_that_was_exchanged_is_noticed(model, tmp_path):
    shutil.rmtree(model.path / "plain")
    shutil.copytree(Plain(text="other").make(tmp_path / "p").path, model.path / "plain")
    with pytest.raises(InputError, match="not the part"):
        open_artifact(model.path).part("plain")
    shutil.rmtree(model.path / "plain")
    with pytest.raises(InputError):
        verify(open_artifact(model.path))


def test_adopting_links_parts_of_parts_too(model, tmp_path):
    with writing(tmp_path / "outer", Origin("outer", "s", 1, {}, {})) as out:
        out.adopt("model", model)
    outer = open_artifact(tmp_path / "outer")
    assert outer.part("model").part("child").content == model.part("child").content
    linked = outer.path / "model" / "own.txt"
    assert linked.stat().st_ino == (model.path / "own.txt").stat().st_ino
    assert verify(outer) == verify(model)


def test_copying_over_a_link_does_not_write_through_it(made, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "text.txt").write_text("new")
    with writing(tmp_path / "x", Origin("k", "s", 1, {}, {})) as out:
        out.link("text.txt", made.file("text.txt"))
        out.copy_folder(".", tmp_path / "folder")
    verify(made)
    assert open_artifact(tmp_path / "x").file("text.txt").read_text() == "new"


def test_a_failed_write_in_place_leaves_nothing_to_open(tmp_path):
    origin = Origin("k", "s", 1, {}, {})
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "x", origin) as out:
        out.file("a").write_text("1")
        raise ZeroDivisionError
    with pytest.raises(InputError):
        open_artifact(tmp_path / "x")
    with writing(tmp_path / "x", origin) as out:
        out.file("b").write_text("2")
    assert list(open_artifact(tmp_path / "x").manifest.files) == ["b"]


def fake(kind: str, vocabulary: str = "", *inputs: Artifact) -> Artifact:
    """An artifact without files on the disk. vocabulary: hash of its tokenizer.json."""
    name = "tokenizer/tokenizer.json" if kind == "blocks" else "tokenizer.json"
    files = {name: FileEntry(1, vocabulary)} if vocabulary else {}
    lineage = lineage_of({each.kind: each for each in inputs})
    made = {"realmctl": "1", "time": "", "seconds": 1.0, "host": ""}
    return Artifact(Path(kind), Manifest(kind, "test", 1, {}, {}, lineage, files=files, parts={}, metrics={}, **made))


def test_lineage_gathers_ancestors_and_the_nearest_wins():
    blocks, other = fake("blocks", "b1"), fake("blocks", "b2")
    spans = fake("spans", "s", other)
    right = {"spans": spans.content, "blocks": blocks.content}
    assert lineage_of({"spans": spans, "blocks": blocks}) == right
    assert lineage_of({"blocks": blocks, "spans": spans}) == right


def test_descent_is_required_of_every_ancestor():
    blocks, retriever, another = fake("blocks"), fake("retriever", "r"), fake("retriever", "q")
    index = fake("index", "", blocks, retriever)
    require_descent(index, blocks, retriever)
    with pytest.raises(MismatchError, match=rf"{retriever.content[:12]}.*{another.content[:12]}"):
        require_descent(index, another)
    with pytest.raises(MismatchError):
        require_descent(fake("index"), blocks)


def test_vocabularies_are_compared_wherever_they_lie(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("blocks/tokenizer").mkdir(parents=True)
    Path("encoder").mkdir()
    Path("blocks/tokenizer/tokenizer.json").write_text('{"model": {"vocab": {"a": 0}}}')
    Path("encoder/tokenizer.json").write_text('{"model": {"vocab": {"a": 1}}}')
    blocks = fake("blocks", "same")
    require_same_vocabulary(blocks, fake("encoder", "same"))
    with pytest.raises(MismatchError, match="encoder"):
        require_same_vocabulary(blocks, fake("encoder", "other"))
    with pytest.raises(InputError, match="tokenizer"):
        require_same_vocabulary(blocks, fake("encoder"))
    for damage in ("{", "[]", "{}", '{"model": 1, "added_tokens": [1]}', "\x00"):
        Path("encoder/tokenizer.json").write_text(damage)
        with pytest.raises(InputError, match=r"encoder/tokenizer\.json"):
            require_same_vocabulary(blocks, fake("encoder", "other"))


def test_opening_takes_the_newest_version_or_the_named_one(tmp_path):
    for text in ("a", "b", "c"):
        Plain(text=text).make(tmp_path / "plain")
    assert open_artifact(tmp_path / "plain").path.name == "v3"
    assert open_artifact(str(tmp_path / "plain" / "v2")).file("text.txt").read_text() == "b"
    with pytest.raises(InputError, match="does not exist"):
        open_artifact(tmp_path / "plain" / "v4")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty"):
        open_artifact(tmp_path / "empty")


def test_versions_are_numbers_not_names(tmp_path):
    made = [Plain(text=str(n)).make(tmp_path / "plain").path.name for n in range(11)]
    assert made[-1] == "v11" and version_numbers(tmp_path / "plain") == list(range(1, 12))
    assert open_artifact(tmp_path / "plain").path.name == "v11"


def test_the_content_covers_files_and_parts(tmp_path):
    manifest = read_manifest(Plain(text="a").make(tmp_path / "plain").path)
    entry = replace(next(iter(manifest.files.values())), sha256="0" * 64)
    others = [replace(manifest, parts={"a": "0" * 64}), replace(manifest, parts={"b": "0" * 64})]
    others += [replace(manifest, files={**manifest.files, "a": entry})]
    assert len({each.content for each in (manifest, *others)}) == 4
