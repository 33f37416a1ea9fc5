"""Artifacts that earlier releases made, in `releases/`: they open, keep their hashes, and are found by their recipe."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact, verify
from tests.fixtures.small_stages import Child, Model, Plain

RELEASES = Path(__file__).with_name("releases")


@pytest.mark.parametrize("release", sorted(path.name for path in RELEASES.iterdir()))
def test_artifacts_of_a_release_open_and_the_same_settings_give_the_same_hashes(release, tmp_path):
    old = {kind: open_artifact(RELEASES / release / kind) for kind in ("plain", "child", "model")}
    assert all(verify(artifact) for artifact in old.values())
    plain = Plain(text="zwölf").make(tmp_path / "plain")
    child = Child(plain=plain).make(tmp_path / "child")
    new = {"plain": plain, "child": child, "model": Model(child=child).make(tmp_path / "model")}
    assert {kind: made.content for kind, made in new.items()} == {kind: made.content for kind, made in old.items()}
    assert {kind: made.recipe for kind, made in new.items()} == {kind: made.recipe for kind, made in old.items()}
    shutil.copytree(RELEASES / release / "plain", tmp_path / "copied")
    assert Plain(text="zwölf").make(tmp_path / "copied").manifest["time"] == old["plain"].manifest["time"]
