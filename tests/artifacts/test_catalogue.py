"""Listing, showing, verifying and planning. A damaged artifact is named, and does not hide the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realmctl.amounts import size_text
from realmctl.artifacts.catalogue import (
    Version,
    in_workspace,
    listing,
    show,
    show_file,
    summary,
    verify_path,
)
from realmctl.artifacts.catalogue_text import listing_text, shown_file_text, shown_text, verified_text
from realmctl.artifacts.manifest import SourceFile
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.pipeline.planning import plan, stage_plan_text
from realmctl.pipeline.workspace import with_defaults
from tests.fixtures.small_stages import Child, Model, Plain, Steps


@pytest.fixture
def w(tmp_path):
    child = Child(plain=Plain().make(tmp_path / "plain")).make(tmp_path / "child")
    Model(child=child).make(tmp_path / "model")
    return tmp_path


def test_listing_names_every_version_and_its_size(w):
    Plain(text="another").make(w / "plain")
    entries = {str(version.path): version for version in listing(w)}
    assert list(entries) == [str(w / name) for name in ("child/v1", "model/v1", "plain/v1", "plain/v2")]
    model = w / "model" / "v1"
    files = [path for path in model.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert entries[str(model)].bytes == sum(path.stat().st_size for path in files)
    assert listing(w / "plain") == [entries[str(w / "plain" / f"v{n}")] for n in (1, 2)]


def test_a_listing_has_counts_a_header_and_headlines_in_80_columns(w):
    Plain(text="another").make(w / "plain")
    long = "a-series-with-a-name-longer-than-its-column"
    Plain(text="x").make(w / long)
    versions = listing(w)
    lines = listing_text(w, versions, {each.path: "length 5, em 0.25, " + "x" * 50 for each in versions}).splitlines()
    size = sum(version.bytes for version in versions)
    assert lines[0] == f"{w}: 5 versions in 4 series, {size_text(size)}"
    assert lines[1].split() == ["VERSION", "KIND", "SIZE", "MADE", "(UTC)", "RESULT"]
    assert max(map(len, lines[1:])) <= 80
    [plain] = [line for line in lines if line.startswith("plain/v2 ")]
    assert plain.split()[1] == "plain" and plain.endswith("length 5, em 0.25")
    assert lines[lines.index(f"{long}/v1") + 1].split()[0] == "plain"
    one = {versions[0].path: "a_measure_with_quite_a_long_name_of_its_own@1 0.9399, em 1"}
    last = listing_text(w, versions[:1], one).splitlines()[-1]
    assert len(last) == 80 and "a_measure_with" in last and last.endswith("… 0.9399")


def test_damaged_and_unfinished_versions_are_listed_as_such(w):
    (w / "child" / "v1" / "text.txt").unlink()
    part = w / "model" / "v1" / "plain" / "text.txt"
    part.unlink()
    with pytest.raises(RuntimeError):
        Steps(stop_before=2).make(w / "steps")
    kinds = {str(version.path): version.kind for version in listing(w)}
    assert kinds == {
        str(w / "child/v1"): "damaged",
        str(w / "model/v1"): "damaged",
        str(w / "plain/v1"): "plain",
        str(w / "steps/v1.partial"): "unfinished",
    }
    text = listing_text(w, listing(w), {})
    assert (
        "is missing or not in its manifest" in " ".join(text.split())
        and "1 version in 4 series" in text
        and "2 damaged, 1 unfinished" in text
    )
    assert listing(w / "steps") == [Version(w / "steps/v1.partial")]


def test_an_empty_folder_and_none(tmp_path):
    assert listing_text(tmp_path, listing(tmp_path), {}) == "no artifacts yet"
    with pytest.raises(InputError, match="does not exist"):
        listing(tmp_path / "none")


def test_showing_follows_the_lineage_to_its_end(w, tmp_path):
    (tmp_path / "corpus").write_text("x")
    plain = Plain(corpus=(tmp_path / "corpus",)).make(w / "plain")
    Child(plain=plain, other=w / "model").make(w / "child")
    value = show(w / "child", w)
    plain_node, other_node = value.ancestors
    assert plain_node.path == str(w / "plain/v2")
    assert [node.field for node in plain_node.inputs] == ["corpus", "vocabulary"]
    assert other_node.path == str(w / "model/v1/child") or other_node.path == str(w / "child/v1")
    assert other_node.inputs[0].path == str(w / "plain/v1")
    text = shown_text(value)
    assert "    corpus: corpus 1 B (" in text and "    vocabulary: train:10\n" in text and "  plain: " in text
    assert json.loads(json.dumps(value.json())) == value.json()
    assert value.json()["manifest"] == json.loads((value.path / "manifest.json").read_text())


def test_showing_where_the_ancestors_are_gone(w, tmp_path):
    (w / "plain").rename(tmp_path.parent / f"{tmp_path.name}-elsewhere")
    assert show(w / "child", tmp_path / "no-workspace").ancestors[0].path is None
    assert "plain: outside (" in shown_text(show(w / "child", w))


def test_verifying_counts_the_bytes(w):
    value = verify_path(w / "model")
    assert value.bytes == listing(w / "model")[0].bytes
    assert verified_text([value]).startswith(f"{w / 'model/v1'}: intact, ")
    path = w / "model" / "v1" / "own.txt"
    path.chmod(0o644)
    path.write_text("own?"[:3].upper())
    with pytest.raises(InputError, match=r"own\.txt"):
        verify_path(w / "model")


def test_names_of_sources_are_shown_and_outside_of_every_hash(w, tmp_path):
    for name, text in (("one.txt", "same"), ("two.txt", "same")):
        (tmp_path / name).write_text(text)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_text("abc")
    one, two = (Plain(corpus=(tmp_path / name,)).make(tmp_path / name[:3]) for name in ("one.txt", "two.txt"))
    assert one.manifest.sources == {"corpus": [SourceFile("one.txt", 4)]} != two.manifest.sources
    assert (one.recipe, one.content) == (two.recipe, two.content)
    assert Plain(corpus=(folder,)).origin().sources == {"corpus": [SourceFile("folder/", 3)]}
    assert Plain().origin().sources == {}


def test_a_file_is_described_with_the_artifact_it_belongs_to(w):
    path = w / "model/v1/plain/text.txt"
    found = show_file(path)
    assert found.json() == {
        "path": str(path),
        "bytes": 4,
        "format": "text",
        "artifact": str(w / "model/v1/plain"),
        "kind": "plain",
        "matches": True,
    }
    assert "text, 4 B" in shown_file_text(found) and "matches the manifest" in shown_file_text(found)
    path.chmod(0o644)
    path.write_text("harm")
    assert "NOT" in shown_file_text(show_file(path))
    (w / "alone.html").write_text("<p>")
    text = shown_file_text(show_file(w / "alone.html"))
    assert "HTML page, 3 B" in text and "does not belong to an artifact" in text


def test_a_series_is_found_in_the_workspace_by_name(w, monkeypatch):
    monkeypatch.chdir(w.parent)
    assert in_workspace(Path("plain"), w) == w / "plain" and in_workspace(Path("plain/v1"), w) == w / "plain/v1"
    assert in_workspace(Path("none"), w) == Path("none")
    (w.parent / "plain").mkdir()
    assert in_workspace(Path("plain"), w) == Path("plain")


def test_a_summary_is_json(w):
    assert json.loads(json.dumps(summary(Plain().make(w / "plain"))))["metrics"] == {"length": 5}


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (6_800_000_000, "6.8 GB"), (10**15, "1000.0 TB")]
)
def test_sizes_for_people(size, text):
    assert size_text(size) == text


def test_inputs_default_to_those_of_the_workspace(w):
    assert with_defaults(Child, {"plain": None, "other": None}, w) == {"plain": w / "plain", "other": None}
    assert with_defaults(Child, {"plain": w / "plain/v1"}, w) == {"plain": w / "plain/v1"}
    with pytest.raises(InputError, match="--plain"):
        with_defaults(Child, {}, w / "none")
    Plain(text="of a sweep").make(w / "other/plain-a")
    with pytest.raises(InputError, match="plain-a"):
        with_defaults(Child, {}, w / "other")


def test_a_plan_says_make_then_reuse_and_writes_nothing(tmp_path):
    stage, out = Plain(text="[lower]"), tmp_path / "plain"
    planned = plan(stage, out)
    assert (planned["makes"], planned["reuses"], planned["estimate"]) == (str(out / "v1"), False, {})
    assert not out.exists()
    made = stage.make(out)
    planned = plan(stage, out)
    assert (planned["makes"], planned["reuses"], planned["recipe"]) == (str(made.path), True, made.recipe)
    assert set(planned["estimate"]) == {"seconds_of_last_version"}
    assert plan(Plain(), out)["makes"] == str(out / "v2")
    assert stage_plan_text(planned).startswith(f"small-stages: would reuse {made.path}\n")
    assert json.loads(json.dumps(planned)) == planned


def test_a_plan_sees_the_unfinished_run_and_the_refusals(tmp_path, monkeypatch):
    monkeypatch.setattr("realmctl.artifacts.unfinished.BRIEF_SECONDS", 0)
    with pytest.raises(RuntimeError):
        Steps(stop_before=2).make(tmp_path / "steps")
    planned = plan(Steps(), tmp_path / "steps")
    assert (planned["resumes"], planned["makes"]) == (True, str(tmp_path / "steps/v1"))
    assert "would resume" in stage_plan_text(planned)
    with pytest.raises(MismatchError, match="unfinished run"):
        plan(Steps(steps=9), tmp_path / "steps")
    with pytest.raises(ConfigError, match="--text"):
        plan(Plain(text="forbidden"), tmp_path / "plain")
