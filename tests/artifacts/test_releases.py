"""Artifacts that earlier releases made, in `releases/`: they open, keep their hashes, and are found by their recipe."""

from __future__ import annotations

import json
import shutil

import pytest

from realmctl.artifacts import open_artifact, verify
from stages.eval_em import EvalEm
from tests.artifacts.make_release import RELEASES, TEXT, evaluated, make_small
from tests.fixtures.small_stages import Plain

ALL = sorted(path.name for path in RELEASES.iterdir())
MOST_BYTES = 500_000
"""Size of what is kept of a release."""


@pytest.mark.parametrize("release", ALL)
def test_artifacts_of_a_release_open_and_the_same_settings_give_the_same_hashes(release, tmp_path):
    old = {kind: open_artifact(RELEASES / release / kind) for kind in ("plain", "child", "model")}
    assert all(verify(artifact) for artifact in old.values())
    new = make_small(tmp_path)
    assert {kind: made.content for kind, made in new.items()} == {kind: made.content for kind, made in old.items()}
    assert {kind: made.recipe for kind, made in new.items()} == {kind: made.recipe for kind, made in old.items()}
    shutil.copytree(RELEASES / release / "plain", tmp_path / "copied")
    assert Plain(text=TEXT).make(tmp_path / "copied").manifest["time"] == old["plain"].manifest["time"]


@pytest.mark.parametrize("release", ALL)
def test_blocks_indexes_and_models_of_a_release_are_searched_and_read(release, one_thread, tmp_path):
    """Opening the graph asks its canaries; the retriever embeds the questions."""
    old = RELEASES / release / "chain"
    kinds = ("blocks", "spans", "retriever", "graph", "qa-model")
    artifacts = {kind: open_artifact(old / kind) for kind in kinds}
    assert all(verify(artifact) for artifact in artifacts.values())
    assert evaluated(old, tmp_path) == pytest.approx(json.loads((old / "found.json").read_text()), abs=0.051)
    scores = EvalEm(qa_model=artifacts["qa-model"], blocks=artifacts["blocks"], questions=old / "questions.jsonl")
    assert scores.make(tmp_path / "answers").metrics["questions"] == 20
    assert sum(path.stat().st_size for path in old.rglob("*") if path.is_file()) < MOST_BYTES
