"""Listing, showing, verifying and planning. A damaged artifact is named, and does not hide the others."""

from __future__ import annotations

import json

import pytest

from realmctl.artifacts.catalogue import (
    listing,
    listing_text,
    shown,
    shown_text,
    size_text,
    summary,
    verified,
    verified_text,
)
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.stage.planning import plan, plan_text
from realmctl.stage.workspace import with_defaults
from tests.fixtures.small_stages import Child, Model, Plain, Steps


@pytest.fixture
def w(tmp_path):
    child = Child(plain=Plain().make(tmp_path / "plain")).make(tmp_path / "child")
    Model(child=child).make(tmp_path / "model")
    return tmp_path


def test_listing_names_every_version_and_its_size(w):
    Plain(text="another").make(w / "plain")
    entries = {entry["path"]: entry for entry in listing(w)}
    assert list(entries) == [str(w / name) for name in ("child/v1", "model/v1", "plain/v1", "plain/v2")]
    model = w / "model" / "v1"
    files = [path for path in model.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert entries[str(model)]["bytes"] == sum(path.stat().st_size for path in files)
    assert listing(w / "plain") == [entries[str(w / "plain" / f"v{n}")] for n in (1, 2)]
    text = listing_text({"artifacts": list(entries.values())})
    assert text.count("\n") == 3 and "small-stages" in text


def test_damaged_and_unfinished_versions_are_listed_as_such(w):
    (w / "child" / "v1" / "text.txt").unlink()
    part = w / "model" / "v1" / "plain" / "text.txt"
    part.unlink()
    with pytest.raises(RuntimeError):
        Steps(stop_before=2).make(w / "steps")
    kinds = {entry["path"]: entry["kind"] for entry in listing(w)}
    assert kinds == {
        str(w / "child/v1"): "damaged",
        str(w / "model/v1"): "damaged",
        str(w / "plain/v1"): "plain",
        str(w / "steps/v1.partial"): "unfinished",
    }
    assert "is not whole" in listing_text({"artifacts": listing(w)})
    assert [entry["kind"] for entry in listing(w / "steps")] == ["unfinished"]


def test_an_empty_folder_and_none(tmp_path):
    assert listing_text({"artifacts": listing(tmp_path)}) == "no artifacts yet"
    with pytest.raises(InputError, match="does not exist"):
        listing(tmp_path / "none")


def test_showing_follows_the_lineage_to_its_end(w, tmp_path):
    (tmp_path / "corpus").write_text("x")
    plain = Plain(corpus=(tmp_path / "corpus",)).make(w / "plain")
    Child(plain=plain, other=w / "model").make(w / "child")
    value = shown(w / "child", w)
    plain_node, other_node = value["ancestors"]
    assert plain_node["path"] == str(w / "plain/v2")
    assert [node["field"] for node in plain_node["inputs"]] == ["corpus", "vocabulary"]
    assert other_node["path"] == str(w / "model/v1/child") or other_node["path"] == str(w / "child/v1")
    assert other_node["inputs"][0]["path"] == str(w / "plain/v1")
    text = shown_text(value)
    assert "    corpus: outside (" in text and "  plain: " in text
    assert json.loads(json.dumps(value)) == value


def test_showing_where_the_ancestors_are_gone(w, tmp_path):
    (w / "plain").rename(tmp_path.parent / f"{tmp_path.name}-elsewhere")
    assert shown(w / "child", tmp_path / "no-workspace")["ancestors"][0]["path"] is None
    assert "plain: outside (" in shown_text(shown(w / "child", w))


def test_verifying_counts_the_bytes(w):
    value = verified(w / "model")
    assert value["bytes"] == listing(w / "model")[0]["bytes"]
    assert verified_text({"verified": [value]}).startswith(f"{w / 'model/v1'}: whole, ")
    path = w / "model" / "v1" / "own.txt"
    path.chmod(0o644)
    path.write_text("own?"[:3].upper())
    with pytest.raises(InputError, match=r"own\.txt is damaged"):
        verified(w / "model")


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
    with pytest.raises(InputError, match=r"needs --plain, and .*/none/plain has no finished version"):
        with_defaults(Child, {}, w / "none")


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
    assert plan_text(planned).startswith(f"small-stages: would reuse {made.path}\n")
    assert json.loads(json.dumps(planned)) == planned


def test_a_plan_sees_the_unfinished_run_and_the_refusals(tmp_path):
    with pytest.raises(RuntimeError):
        Steps(stop_before=2).make(tmp_path / "steps")
    planned = plan(Steps(), tmp_path / "steps")
    assert (planned["resumes"], planned["makes"]) == (True, str(tmp_path / "steps/v1"))
    assert "would resume" in plan_text(planned)
    with pytest.raises(MismatchError, match="unfinished run"):
        plan(Steps(steps=9), tmp_path / "steps")
    with pytest.raises(ConfigError, match="--text forbidden"):
        plan(Plain(text="forbidden"), tmp_path / "plain")
