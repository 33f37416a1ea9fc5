"""examples/recorded: measurements that outlive the machine, hashes of settings, and verdicts by rules."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from realmctl.pipeline import pipeline_file
from realmctl.stage.discovery import own_stages

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "recorded"
PIPELINE = """
vars: {world: w, seed: 0, k1: 2, other: 5}
stages:
  blocks: {stage: chunk, corpus: ["${world}/texts.jsonl"], tokenizer: "train:300", workers: 1}
  bm25.start: {stage: eval-em, retrieval: bm25, questions: "${world}/questions.jsonl", hits: "${k1}", batch-size: "${other}"}
  encoder: {stage: mlm-init, bert: "scratch:L1-H16", steps: "${other}", seed: "${seed}"}
  never.retriever: {stage: ict-init, seed: "${seed}"}
"""


def load(name: str) -> Any:
    """A module of the program, which is a folder of scripts and no package."""
    if str(PROGRAM) not in sys.path:
        sys.path.append(str(PROGRAM))
    return import_module(name)


ledger, record, judged = load("ledger"), load("record"), load("judged")


def made_up(output: str, seed: int, settings: str = "s", **values: float) -> Any:
    """A record with chosen numbers."""
    steps = {"encoder": 600.0, output: 30.0}
    return ledger.Record(output, seed, settings, values, steps, {"realmctl": "1", "processor": "p"})


def world_of(folder: Path, seed: int) -> Path:
    folder.mkdir()
    texts = [{"id": str(n), "title": f"Page {n}", "text": f"The town of Velford{n} is old."} for n in range(5)]
    questions = [{"question": f"Which town is Page {n}?", "answer": [f"Velford{n}"]} for n in range(5)]
    for name, lines in (("texts", texts), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    (folder / "world.json").write_text(json.dumps({"settings": {"seed": seed, "persons": 5}}))
    return folder


def pipeline_of(tmp_path: Path, world: Path, workspace: str = "artifacts", **variables: object) -> Any:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    values = {"world": str(world), **{name: str(value) for name, value in variables.items()}}
    return pipeline_file.read(tmp_path / "p.yaml", own_stages(), values, tmp_path / workspace)


def test_a_file_of_records_survives_a_torn_line(tmp_path, capsys):
    path = tmp_path / "results" / "runs.jsonl"
    first = ledger.Ledger(path)
    first.append(made_up("a.start", 0, em=0.5))
    with path.open("a") as stream:
        stream.write('{"output": "a.start", "see')
    again = ledger.Ledger(path)
    assert [each.key for each in again.records] == [("a.start", 0, "s")] and "line 2" in capsys.readouterr().out
    again.append(made_up("a.start", 1, em=0.7))
    last = ledger.Ledger(path)
    assert last.by_seed("a.start", "em") == {0: 0.5, 1: 0.7}
    assert ("a.start", 1, "s") in last and ("a.start", 1, "other") not in last


def test_lines_with_older_settings_are_left_out(tmp_path):
    found = ledger.Ledger(tmp_path / "runs.jsonl")
    for each in (made_up("a", 0, "old", em=0.1), made_up("a", 1, "old", em=0.2), made_up("a", 0, "new", em=0.3)):
        found.append(each)
    assert found.by_seed("a", "em") == {0: 0.3} and found.by_seed("b", "em") == {} == found.by_seed("a", "recall@1")


def test_a_hash_has_everything_that_a_measurement_depends_on_and_no_more(tmp_path):
    worlds = {seed: world_of(tmp_path / f"somewhere-{seed}", seed) for seed in (0, 1)}

    def hashes(seed: int, **variables: object) -> dict[str, str]:
        pipeline = pipeline_of(tmp_path, worlds[seed], seed=seed, **variables)
        return record.settings_hashes(pipeline, {"world": worlds[seed]}, seed)

    first = hashes(0)
    assert hashes(1) == first and hashes(0, workspace="elsewhere") == first
    changed = hashes(0, k1=3)
    assert {name for name in first if changed[name] != first[name]} == {"bm25.start"}
    changed = hashes(0, other=6)  # a batch size changes only the speed of eval-em
    assert {name for name in first if changed[name] != first[name]} == {"encoder", "never.retriever"}
    (worlds[0] / "world.json").write_text(json.dumps({"settings": {"seed": 0, "persons": 6}}))
    changed = hashes(0)
    assert all(changed[name] != first[name] for name in first)


def test_what_is_recorded_is_not_made_again_on_a_new_machine(tmp_path):
    world = world_of(tmp_path / "w", 0)
    results = tmp_path / "runs.jsonl"
    for workspace in ("first", "second"):
        pipeline = pipeline_of(tmp_path, world, workspace)
        hashes = record.settings_hashes(pipeline, {"world": world}, 0)
        record.Recorder(pipeline, hashes, 0, ledger.Ledger(results)).record_all("*", "table1.*")
    [line] = ledger.Ledger(results).records
    assert line.output == "bm25.start" and line.values["questions"] == 5 and 0 <= line.values["recall@1"] <= 1
    assert line.seconds.keys() == {"blocks", "bm25.start"}
    made = {path.name for path in (tmp_path / "first").iterdir()}
    assert made == {"blocks", "bm25.start", "seconds.json"}  # nothing that no measurement needs
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ([0.5, 0.6, 0.7], [0.4, 0.5, 0.65], "**shown**"),
        ([0.5, 0.6, 0.7], [0.49, 0.59, 0.69], "not shown here"),
        ([0.5, 0.6, 0.7], [0.1, 0.61, 0.2], "not shown here"),
        ([0.5, 0.6], [0.4, 0.5], "open: 2 of 3 seeds"),
        ([], [0.4, 0.5, 0.6], "not measured"),
    ],
)
def test_a_claim_is_decided_by_its_rule(tmp_path, first, second, verdict):
    found = ledger.Ledger(tmp_path / "runs.jsonl")
    for name, column in (("a", first), ("b", second)):
        for seed, em in enumerate(column):
            found.append(made_up(name, seed, em=em))
    claim = judged.Claim("A beats B", ("a", "em"), ("b", "em"), 0.02)
    row = judged.verdicts([claim], found).splitlines()[4]
    assert verdict in row and "em of `a` - `b`" in row and "+.020" in row


@pytest.mark.parametrize("part", ["starts", "table1"])
def test_a_page_has_every_number_and_a_dash_for_what_is_missing(tmp_path, part):
    module = load(f"{part}_page")
    empty = module.page(ledger.Ledger(tmp_path / "none.jsonl"))
    assert "not measured" in empty and "Complete seeds: none" in empty
    found = ledger.Ledger(tmp_path / "runs.jsonl")
    rows = [
        *(f"{start}.start" for start in module.TEXT_STARTS),
        *(f"{start}.{name}" for start in module.STARTS for name in module.MEASUREMENTS),
    ] if part == "starts" else [
        f"table1.{row}" for row in (*module.ROWS, "knn-lm", "realm-spans")
    ]  # fmt: skip
    metrics = ("em", "recall@1", "recall@5", "recall@20", "retrieval_utility", "log_prob", "lm_log_prob")
    for number, output in enumerate(rows):
        for seed in (0, 1, 2):
            values = dict.fromkeys(metrics, 0.1 + number / 1000 + seed / 100)
            found.append(made_up(output, seed, questions=300, **values))
    page = module.page(found)
    assert "Complete seeds: 0, 1, 2." in page and "missing for a seed: 0." in page and " 0.5 " in page
    assert f"{0.11 + (len(rows) - 1) / 1000:.3f}".removeprefix("0") + " ± .010" in page
    assert "open:" not in page and "not measured" not in page


def test_every_output_of_the_pages_is_in_the_pipeline(tmp_path):
    starts, table1 = load("starts_page"), load("table1_page")
    text = "".join((ROOT / "examples" / name).read_text() for name in ("starts.yaml", "starts_text.yaml"))
    outputs = [f"{start}.{name}" for start in starts.STARTS for name in starts.MEASUREMENTS]
    outputs += [f"{start}.start" for start in starts.TEXT_STARTS]
    outputs += [f"table1.{row}" for row in (*table1.ROWS, "knn-lm", "realm-spans")]
    claimed = [output for claim in (*starts.CLAIMS, *table1.CLAIMS) for output, _ in (claim.first, claim.second)]
    for output in (*outputs, *claimed, *starts.SHARED):
        assert f"\n  {output}: {{stage: " in text, output


@pytest.mark.parametrize("part", ["starts", "table1"])
def test_the_published_page_is_that_of_the_published_runs(part):
    results = ROOT / "docs" / "results"
    assert (results / f"{part}.md").read_text() == load(f"{part}_page").page(
        ledger.Ledger(results / part / "runs.jsonl")
    )
