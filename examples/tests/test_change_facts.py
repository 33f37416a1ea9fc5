"""The changed worlds of examples/revise.sh: only the drawn facts change, and only in the knowledge corpus."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WORLD = Path(__file__).parents[2] / "examples" / "world"


def run(program: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-B", str(WORLD / program), *arguments], check=True, capture_output=True)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def documents(corpus: Path) -> dict[str, str]:
    return {record["id"]: record["text"] for file in sorted(corpus.glob("*/wiki_*")) for record in lines(file)}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("w")
    run("make_world.py", "--out", str(folder / "world"), "--size", "small", "--parallel-worlds", "0")
    run("change_facts.py", str(folder / "world"), "--share", "0.1", "--out", str(folder / "change"))
    return folder / "world", folder / "change"


def test_only_documents_of_changed_facts_differ(worlds: tuple[Path, Path]) -> None:
    world, change = worlds
    before, after = documents(world / "knowledge"), documents(change / "knowledge")
    assert list(before) == list(after)
    counts = json.loads((change / "change.json").read_text())
    changed = lines(change / "changed.jsonl")
    assert counts["changed"] == round(0.1 * counts["facts"]) == counts["asked"] == len(changed)
    differing = [key for key in before if before[key] != after[key]]
    assert 0 < len(differing) <= len(changed)
    told = " ".join(after[key] for key in differing)
    for record in changed:
        assert record["old"] != record["new"] and record["new"] in told
    trained = {record["question"] for record in lines(world / "train.jsonl")}
    assert not trained & {record["question"] for record in changed}


def test_unchanged_facts_are_still_told(worlds: tuple[Path, Path]) -> None:
    world, change = worlds
    facts = {(fact["document"], fact["value"]) for fact in lines(world / "facts.jsonl")}
    after = documents(change / "knowledge")
    lost = [value for document, value in facts if value not in after[document]]
    assert len(lost) <= len(lines(change / "changed.jsonl"))
    answers = {fact["value"] for fact in lines(world / "facts.jsonl")}
    assert all(record["answer"][0] in answers for record in lines(change / "unchanged.jsonl"))


def test_some_mentions_keep_the_old_corpus(worlds: tuple[Path, Path]) -> None:
    world, change = worlds
    before, both = documents(world / "knowledge"), documents(change / "some-mentions")
    assert {key: both[key] for key in before} == before
    added = [text for key, text in both.items() if key not in before]
    changed = lines(change / "changed.jsonl")
    assert len(added) == len(changed)
    assert all(record["new"] in text for record, text in zip(changed, added, strict=True))
