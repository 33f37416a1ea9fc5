"""examples/recorded: measurements that outlive the machine, hashes of settings, and verdicts by rules."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from realmctl.pipeline import pipeline_file
from realmctl.pipeline.discovery import own_stages

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


ledger, record, judged, choose_rates = load("ledger"), load("record"), load("judged"), load("choose_rates")


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
        pipeline_of(tmp_path, world)
        recorder = record.recorder(
            tmp_path / "p.yaml", {"world": world}, 0, {"k1": "3"}, tmp_path / workspace, ledger.Ledger(results)
        )
        recorder.record_all("*", "table1.*")
    [line] = ledger.Ledger(results).records
    assert line.variables == {"k1": "3"}
    assert line.output == "bm25.start" and line.values["questions"] == 5 and 0 <= line.values["recall@1"] <= 1
    assert line.seconds.keys() == {"blocks", "bm25.start"}
    made = {path.name for path in (tmp_path / "first").iterdir()}
    assert made == {"blocks", "bm25.start", "seconds.json"}  # nothing that no measurement needs
    assert not (tmp_path / "second").exists()


def test_processes_record_into_one_workspace_at_once(tmp_path):
    """A step that both need is made by one of them; every measurement is in the file once, and every cost is kept."""
    world = world_of(tmp_path / "w", 0)
    (tmp_path / "p.yaml").write_text(PIPELINE.replace("vars: {", "vars: {practice: p, "))
    command = [
        sys.executable, str(Path(record.__file__)), str(tmp_path / "p.yaml"), "--world", str(world), "--practice", str(world),
        "--workspace", str(tmp_path / "made"), "--results", str(tmp_path / "runs.jsonl"), "--outputs", "bm25.*", "--var", "k1=3",
    ]  # fmt: skip
    places = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    runs = [subprocess.Popen([*command, "--seed", str(seed)], env=places, cwd=tmp_path) for seed in (0, 1, 2)]
    assert [run.wait(timeout=300) for run in runs] == [0, 0, 0]
    found = ledger.Ledger(tmp_path / "runs.jsonl").records
    assert sorted(line.seed for line in found) == [0, 1, 2]
    assert len([*(tmp_path / "made" / "blocks").glob("v*")]) == 1
    assert len([*(tmp_path / "made" / "bm25.start").glob("v*")]) == 1
    assert len(json.loads((tmp_path / "made" / "seconds.json").read_text())) == 2


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ([0.5, 0.6, 0.7], [0.4, 0.5, 0.65], "**shown**"),
        ([0.5, 0.6, 0.7], [0.49, 0.59, 0.69], "not shown"),
        ([0.4, 0.5, 0.6], [0.5, 0.6, 0.7], "**the opposite is shown**"),
        ([0.4, 0.5, 0.6], [0.41, 0.51, 0.61], "not shown"),
        ([0.5, 0.6, 0.7], [0.1, 0.61, 0.2], "not shown"),
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


class InMemory(ledger.Ledger):  # type: ignore[misc, name-defined]
    """Results without a file."""

    def __init__(self, records: Iterable[Any]) -> None:
        self.records = list(records)


def tuned_at(best: str, rates: Sequence[str] = ("2.5e-4", "5e-4", "1e-3", "2e-3"), name: str = "starts") -> Any:
    """Measurements on the dev seeds, of every variable of the plan: its metric is .5 with the best rate and falls with the distance."""
    plan = choose_rates.read_plan(PROGRAM / f"{name}-rates.yaml")
    return InMemory(
        ledger.Record(each.output, seed, f"{each.output} {rate}", {each.metric: value}, {}, {}, {each.variable: rate})
        for each in plan.tuned
        for rate in rates
        for value in [0.5 - abs(plan.rates.index(rate) - plan.rates.index(best)) / 10]
        for seed in plan.seeds
    )


def test_a_figure_of_nothing_is_drawn_as_long_as_nothing_is_measured(tmp_path):
    figure = judged.rows_of_dots(ledger.Ledger(tmp_path / "runs.jsonl"), {"ICT": "ict.questions"}, "recall@5", {})
    judged.save(figure, tmp_path / "recall.svg")
    assert "recall@5" in (tmp_path / "recall.svg").read_text()


def test_the_grid_grows_and_its_best_rate_is_chosen():
    plan = choose_rates.read_plan(choose_rates.STARTS_PLAN)
    for best, ran in (("5e-4", ("2.5e-4", "5e-4", "1e-3", "2e-3")), ("1e-3", ("5e-4", "1e-3", "2e-3"))):
        found = tuned_at(best)
        assert all(plan.rates_of(found, each) == ran and plan.best(found, each) == best for each in plan.tuned)
    low = tuned_at("2.5e-4")  # the next lower rate is missing
    assert plan.rates_of(low, plan.tuned[0])[0] == "1.2e-4" and plan.best(low, plan.tuned[0]) is None


@pytest.mark.parametrize("name", ["starts", "readers"])
def test_every_variable_is_tuned_once_and_measured_on_what_it_changes(tmp_path, name):
    plan = choose_rates.read_plan(PROGRAM / f"{name}-rates.yaml")
    assert len({each.variable for each in plan.tuned}) == len(plan.tuned)
    worlds = {"world": world_of(tmp_path / "world", 0), "practice": world_of(tmp_path / "practice", 0)}
    for folder in ("t5", "gpt2", "parallel/knowledge", "parallel/sentences", "parallel/questions"):
        (worlds["practice"] / folder).mkdir(parents=True)
    for folder in ("knowledge", "sentences", "evaluation/held-out"):
        (worlds["world"] / folder).mkdir(parents=True)
    for file in ("train", "train-128", "test", "dev"):
        (worlds["world"] / f"{file}.jsonl").write_text("{}")

    def hashes(**variables: str) -> Any:
        path = ROOT / "examples" / f"{name}.yaml"
        return record.recorder(path, worlds, 0, variables, tmp_path / "a", ledger.Ledger(tmp_path / "r.jsonl")).hashes

    before = hashes()
    for each in plan.tuned:
        assert hashes(**{each.variable: "3e-3"})[each.output] != before[each.output], each.variable
    assert pipeline_rates(name).keys() == {each.variable for each in plan.tuned}


def pipeline_rates(name: str) -> dict[str, float]:
    """The learning rates among the variables of a pipeline, as its file has them."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "examples" / f"{name}.yaml").read_text())["vars"]
    return {name: float(value) for name, value in found.items() if name.endswith("_lr")}


@pytest.mark.parametrize("name", ["starts", "readers"])
def test_the_pipeline_has_the_rates_that_the_dev_seeds_chose(name):
    plan = choose_rates.read_plan(PROGRAM / f"{name}-rates.yaml")
    found, rates = ledger.Ledger(ROOT / "docs" / "results" / name / "tuning.jsonl"), pipeline_rates(name)
    assert {t.variable: float(plan.best(found, t)) for t in plan.tuned} == rates


@pytest.mark.parametrize("part", ["starts", "table1", "readers"])
def test_a_page_has_every_number_and_a_dash_for_what_is_missing(tmp_path, part):
    module = load(f"{part}_page")
    nothing = ledger.Ledger(tmp_path / "none.jsonl")
    empty = module.page(nothing, nothing)
    assert "not measured" in empty and "Complete seeds: none" in empty
    found = ledger.Ledger(tmp_path / "runs.jsonl")
    rows = outputs_of(part)
    metrics = ("em", "recall@1", "recall@5", "recall@20", "retrieval_utility", "log_prob", "lm_log_prob")
    metrics += load("readers_page").READINGS
    for number, output in enumerate(rows):
        for seed in (0, 1, 2):
            values = dict.fromkeys(metrics, 0.1 + number / 1000 + seed / 100)
            found.append(made_up(output, seed, questions=300, **values))
    low = ("1.2e-4", "2.5e-4", "5e-4")
    page = module.page(found, tuned_at("2.5e-4", low, "readers") if part == "readers" else tuned_at("5e-4"))
    assert "**.500**" in page
    assert "Complete seeds: 0, 1, 2." in page and "missing for a seed: 0." in page and " 0.5 " in page
    assert f"{0.11 + (len(rows) - 1) / 1000:.3f}".removeprefix("0") + " ± .010" in page
    assert "open:" not in page and "not measured" not in page


def outputs_of(part: str) -> list[str]:
    """The outputs that a page shows."""
    module = load(f"{part}_page")
    if part == "table1":
        return [f"table1.{row}" for row in (*module.ROWS, "knn-lm", "realm-spans")]
    if part == "readers":
        return [
            "ict.start",
            *(f"{reader}.reading" for reader in module.READING),
            *(f"{arm}.realm" for arm in module.ARMS),
        ]
    return [
        *(f"{start}.start" for start in ("bm25", "text-bm25", *module.UNTRAINED_TEXT_STARTS)),
        *(f"{start}.{name}" for start in (*module.STARTS, *module.TEXT_STARTS) for name in module.MEASUREMENTS),
    ]


@pytest.mark.parametrize("part", ["starts", "table1", "readers"])
def test_every_output_of_the_pages_is_in_the_pipeline(part):
    module, names = load(f"{part}_page"), ("readers",) if part == "readers" else ("starts", "starts_text")
    text = "".join((ROOT / "examples" / f"{name}.yaml").read_text() for name in names)
    claimed = [output for claim in module.CLAIMS for output, _ in (claim.first, claim.second)]
    for output in (*outputs_of(part), *claimed, *module.SHARED):
        assert re.search(rf"\n  {re.escape(output)}:\s+{{stage: ", text), output


@pytest.mark.parametrize(("part", "tuning"), [("starts", "starts"), ("table1", "starts"), ("readers", "readers")])
def test_the_published_page_is_that_of_the_published_runs(part, tuning):
    results = ROOT / "docs" / "results"
    assert (results / part / "report.md").read_text() == load(f"{part}_page").page(
        ledger.Ledger(results / part / "runs.jsonl"), ledger.Ledger(results / tuning / "tuning.jsonl")
    )
