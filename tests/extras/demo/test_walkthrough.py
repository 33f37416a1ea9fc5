"""`realmctl demo` at toy scale: the files of the package, the table, the answers, and a second run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact
from realmctl.errors import ConfigError, InputError
from realmctl.extras.demo import walkthrough
from realmctl.extras.demo.world.settings import SIZES


def at_toy_scale(pipeline: str) -> str:
    """The same outputs with every count of steps and sentences cut to two."""
    smaller = re.sub(r"((?:steps|refresh-every|warmup|batch-size|checkpoint-every): *)\d+", r"\g<1>2", pipeline)
    return smaller.replace("L2-H128-A4", "L1-H16-A1").replace("train:4000", "train:600")


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A pipeline and a world of toy scale in place of the demo's."""
    pipeline = tmp_path / "toy.yaml"
    pipeline.write_text(at_toy_scale(walkthrough.PIPELINE.read_text(encoding="utf-8")), encoding="utf-8")
    monkeypatch.setattr(walkthrough, "PIPELINE", pipeline)
    monkeypatch.setitem(walkthrough.SIZES, "demo", SIZES["small"])
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_the_demo_at_toy_scale(toy, realmctl):
    code, out, err = realmctl("demo", "d", "--jobs", 1)
    assert code == 0, err
    assert "everything goes to d. A quiet 2-core AMD EPYC took" in err and re.search(
        r"--- 9/\d+ \w.* after the start", err
    )
    table, first, second, more = out.strip().split("\n\n")
    scores = {name: open_artifact(f"d/artifacts/{series}").metrics for name, series in walkthrough.SCORES.items()}
    for line, metrics in zip(table.splitlines()[1:], scores.values(), strict=True):
        assert line.split()[2] == f"{metrics['em']:.3f}"
    asked = [json.loads(line)["question"] for line in Path("d/world/dev.jsonl").read_text().splitlines()[:2]]
    assert [text.splitlines()[0] for text in (first, second)] == asked and "--workspace d/artifacts" in more
    made = [open_artifact(path) for path in Path("d/artifacts").iterdir()]
    before = {path: path.stat().st_mtime_ns for path in Path("d").rglob("*.json")}
    again = realmctl("demo", "d", "--jobs", 1)
    assert again[:2] == (0, out) and again[2].count("nothing to do") == len(made)
    assert before == {path: path.stat().st_mtime_ns for path in Path("d").rglob("*.json")}


def test_another_seed_and_a_damaged_world_are_refused(tmp_path):
    summary = tmp_path / "world/world.json"
    summary.parent.mkdir()
    summary.write_text(json.dumps({"settings": {"seed": 3}}))
    with pytest.raises(ConfigError, match="seed 3"):
        walkthrough.run_demo(tmp_path, 0, 1)
    for text in ("{", "[]", '{"settings": {}}'):
        summary.write_text(text)
        with pytest.raises(InputError, match=r"world.json"):
            walkthrough.run_demo(tmp_path, 0, 1)
    assert not (tmp_path / "artifacts").exists()
