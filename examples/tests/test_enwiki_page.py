"""The page of enwiki.sh: paired differences against closed forms, and verdicts from scores written by hand."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

import realmctl.loading  # noqa: F401  # first used while a test has replaced what it holds, it would keep the replacement
from realmctl.artifacts import Artifact, Origin, writing

PROGRAM = Path(__file__).parents[2] / "examples" / "enwiki"
NAMES = ("paired", "results", "targets", "page", "plots", "sides")
QUESTIONS = 40


@pytest.fixture(scope="module")
def program() -> Iterator[dict[str, ModuleType]]:
    """The modules of examples/enwiki, whose names others have too."""
    former = {name: sys.modules.pop(name, None) for name in NAMES}
    sys.path.insert(0, str(PROGRAM))
    yield {name: importlib.import_module(name) for name in NAMES}
    sys.path.remove(str(PROGRAM))
    for name, module in former.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def test_a_paired_difference_is_the_mean_over_seeds_with_a_normal_interval(program: dict[str, ModuleType]) -> None:
    rng = np.random.default_rng(0)
    first = {seed: rng.random(QUESTIONS) < 0.6 for seed in range(3)}
    second = {seed: rng.random(QUESTIONS) < 0.4 for seed in range(1, 4)}
    found = program["paired"].paired(first, second)
    own = np.mean([first[seed].astype(float) for seed in (1, 2)], axis=0)
    other = np.mean([second[seed].astype(float) for seed in (1, 2)], axis=0)
    assert found.seeds == 2 and found.mean == pytest.approx((own - other).mean())
    error = (own - other).mean() / ttest_rel(own, other).statistic
    assert (found.low, found.high) == pytest.approx((found.mean - 1.96 * error, found.mean + 1.96 * error))
    assert found.above == sum(first[seed].mean() > second[seed].mean() for seed in (1, 2))
    assert program["paired"].paired(first, {9: first[0]}) is None


def write(series: Path, metrics: dict[str, Any], files: dict[str, str] | None = None, **settings: Any) -> None:
    """Commit one version of an output with chosen numbers."""
    with writing(series / "v1", Origin(series.name, "made-up", 1, settings, {})) as out:
        out.metrics.update(metrics)
        for name, text in (files or {}).items():
            out.file(name).write_text(text, encoding="utf-8")


def retrieved(first: int) -> dict[str, str]:
    """Hits of all questions: the best block holds an answer for the first `first` questions, the second block for all."""
    blocks = [[{"has_answer": number < first}, {"has_answer": True}] for number in range(QUESTIONS)]
    return {"retrieved.json": json.dumps([{"ctxs": one} for one in blocks])}


def predictions(right: int, asked: int) -> dict[str, str]:
    """The first `right` of `asked` predictions match."""
    said = [{"question": "?", "prediction": f"the {n}." if n < right else "no"} for n in range(asked)]
    return {"predictions.jsonl": "".join(json.dumps(one) + "\n" for one in said)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two seeds: REALM finds the answer to one more question at rank 1, and answers two more of the ten test questions."""
    questions = tmp_path / "questions"
    questions.mkdir()
    parts = [("dev", 20), ("test", 10), ("train", 10)]
    asked = [
        {"question": f"{part} {n}?", "answer": [str(n)], "part": part, "file": "squad"}
        for part, count in parts
        for n in range(count)
    ]
    (questions / "all.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
    test = [json.dumps({key: one[key] for key in ("question", "answer")}) for one in asked if one["part"] == "test"]
    (questions / "test.jsonl").write_text("\n".join(test) + "\n", encoding="utf-8")
    start = tmp_path / "start"
    write(start / "blocks", {"blocks": 1234}, max_wordpieces=128)
    write(start / "retriever", {}, projection=64)
    write(start / "recall", {}, retrieved(15))
    write(start / "bm25-recall", {}, retrieved(18))
    for seed in (0, 1):
        own = tmp_path / f"seed-{seed}"
        write(own / "start-utility", {"told_utility": 1.2 - 0.5 * seed, "retrieval_utility": 0.3, "top_1_utility": 0.1})
        write(own / "realm-utility", {"told_utility": 1.2, "retrieval_utility": 0.4, "top_1_utility": 0.15})
        write(own / "realm-recall", {}, retrieved(16))
        for arm, right in {"plain": 4, "start": 2, "realm": 4, "bm25": 3}.items():
            write(own / f"{arm}-scores", {"em": right / 10, "recall@1": 0.5}, predictions(right, 10))
    return tmp_path


def test_hits_of_a_ranking_are_counted_at_the_depths_that_eval_run_measured(
    program: dict[str, ModuleType], folder: Path
) -> None:
    found_at = {1: 1, 2: None, 3: 5, 4: 20}  # question: the smallest depth with a hit
    lines = [
        {"query": str(number), **{f"Success@{k}": float(at is not None and at <= k) for k in (1, 5, 20)}}
        for number, at in reversed(found_at.items())
    ]
    per_query = "".join(json.dumps(line) + "\n" for line in lines)
    write(folder / "start/hybrid-recall", {}, {"per-query.jsonl": per_query})
    hits = program["results"].Experiment(folder, (0, 1), "test").start.hits("hybrid-recall")
    assert [hits[:, :depth].any(1).tolist() for depth in (1, 5, 20)] == [
        [True, False, False, False],
        [True, False, True, False],
        [True, False, True, True],
    ]


def test_verdicts(program: dict[str, ModuleType], folder: Path) -> None:
    made = program["results"].Experiment(folder, (0, 1), "test")
    found = {target.asked.split(":")[0]: target for target in program["targets"].targets(made)}
    start, told, before, recall, top_1, best, realm, over_orqa = found.values()
    assert start.found == "0.750, 1.000, 1.000" and start.reached is True
    assert told.found == "+1.20, +0.70" and told.reached is False  # the lowest seed counts
    assert before.reached is True and top_1.found == "+0.05, +0.05" and top_1.reached is True
    assert recall.found.startswith("+0.025 [-0.024, +0.074], above 0 on 2 of 2 seeds") and recall.reached is False
    assert best.found == "start, plain reader 0.400, BM25 0.300" and best.reached is True
    assert realm.found.startswith("+0.200 [-0.061, +0.461]") and realm.reached is False
    assert over_orqa.asked.startswith("EM, REALM minus ORQA") and over_orqa.reached is None


def test_orqa_of_equal_compute_stands_beside_realm(program: dict[str, ModuleType], folder: Path) -> None:
    for seed in (0, 1):
        own = folder / f"seed-{seed}"
        write(own / "orqa-recall", {}, retrieved(14))
        for arm, right in {"orqa-plain": 1, "realm-plain": 9}.items():
            write(own / f"{arm}-scores", {"em": right / 10}, predictions(right, 10))
    made = program["results"].Experiment(folder, (0, 1), "test")
    *_, target = program["targets"].targets(made)
    assert target.found.startswith("+0.800 [") and target.reached is True
    text = program["page"].page(made, "the command", "recipe.md", [])
    assert (
        "**Exact match, the retrievers of REALM and ORQA, each with a plain reader**: a gain is shown; REALM minus ORQA is +0.800"
        in text
    )
    assert "| ORQA of equal compute | 0.700 1.000 1.000 |" in text
    assert "recall@1 of REALM minus that of ORQA of equal compute, all questions: +0.050" in text
    assert "| ORQA of equal compute, plain reader | 0.100 ± 0.000 |" in text


def test_what_holds_is_what_the_intervals_say(program: dict[str, ModuleType], folder: Path) -> None:
    def holds() -> str:
        made = program["results"].Experiment(folder, (0, 1), "test")
        text = program["page"].page(made, "the command", "recipe.md", [])
        return str(text.partition("## What holds\n\n")[2].partition("\n\n##")[0])

    assert "**Recall@1, all questions**: no difference is shown; REALM minus its start is +0.025" in holds()
    assert "**Exact match, REALM**: no difference is shown; REALM minus its start is +0.200 [-0.061, +0.461]" in holds()
    for seed, (hits, gained) in enumerate([(35, "a gain"), (1, "a loss")]):
        for number in (0, 1):
            write(folder / f"seed-{number}/realm-recall-{seed}", {}, retrieved(hits))
            series = folder / f"seed-{number}/realm-recall"
            shutil.rmtree(series)
            shutil.copytree(folder / f"seed-{number}/realm-recall-{seed}", series)
        assert f"**Recall@1, all questions**: {gained} is shown" in holds()


def test_the_first_figure_has_the_differences_of_the_page(program: dict[str, ModuleType], folder: Path) -> None:
    made = program["results"].Experiment(folder, (0, 1), "test")
    text = program["page"].page(made, "the command", "recipe.md", [], "page/outcome.svg")
    found = program["plots"].differences(text)
    assert [*found] == ["recall@1, REALM minus its start", "recall@5, REALM minus its start", "exact match"]
    realm, copied, bm25 = found["exact match"]
    assert realm.label == "REALM minus start, copy-trained reader" and (realm.mean, realm.low) == (0.2, -0.061)
    assert (copied.mean, bm25.mean) == (-0.2, -0.1) and "(page/outcome.svg)" in text
    program["plots"].draw_outcome(text, folder / "outcome.svg")
    assert "REALM minus start, copy-trained reader" in (folder / "outcome.svg").read_text(encoding="utf-8")
    program["plots"].draw_outcome("no numbers", folder / "outcome.svg")
    assert not (folder / "outcome.svg").exists()


@pytest.mark.parametrize("name", ["real-text", "real-text-long"])
def test_what_holds_on_the_pages_stands_in_their_sections(program: dict[str, ModuleType], name: str) -> None:
    """These pages were measured once. Their first lines repeat numbers of the sections below."""
    results = Path(__file__).parents[2] / "docs" / "results"
    _, holds, rest = re.split(
        r"## What holds\n|## Retrieval before", (results / name / "report.md").read_text(encoding="utf-8")
    )
    lines = [line for line in holds.splitlines() if line.startswith("- ")]
    assert 1 <= len(lines) <= 5 and (results / name / "outcome.svg").is_file()
    for line in lines:
        assert line.partition("REALM minus its start is ")[2] in rest


def test_equal_numbers_give_equal_curves(program: dict[str, ModuleType], folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    lines = "".join(json.dumps({"step": step, "loss": 9.0 - step}) + "\n" for step in range(5))
    for seed in (0, 1):
        write(folder / f"seed-{seed}" / "encoder", {}, {"metrics.jsonl": lines})
    made = program["results"].Experiment(folder, (0, 1), "test")
    drawn = [program["plots"].draw_all(made, tmp_path / name) for name in ("first", "second")]
    assert [[name for name, _ in one] for one in drawn] == [["practice.svg"]] * 2
    first, second = ((tmp_path / name / "practice.svg").read_text(encoding="utf-8") for name in ("first", "second"))
    assert first == second and "seed 1" in first


def test_the_pages_say_what_is_missing(program: dict[str, ModuleType], folder: Path) -> None:
    made = program["results"].Experiment(folder, (0, 1, 2), "test")
    recipe = program["page"].recipe_page(made, "page.md", "## Why\n\nA reason.")
    assert "4 of 7 targets that were measured are reached." in recipe and recipe.endswith("## Why\n\nA reason.\n")
    text = program["page"].page(made, "the command", "recipe.md", [("plots/a.svg", "a curve")])
    assert "[The recipe](recipe.md)" in text and "![a curve](plots/a.svg)" in text and "target is" not in text
    assert "| start, untrained | 0.750 1.000 1.000 | 0.375 1.000 1.000 |" in text
    assert "| BM25 | 0.900 1.000 1.000 | 0.450 1.000 1.000 |" in text
    assert "PCA to 64 components" in text
    assert "Seeds: 0, 1, 2." in text and "Fine-tuning:" not in text and "REALM: " not in text
    assert "| REALM's retriever, plain reader | - | - | - | - | - |" in text
    assert "| REALM | 0.400 ± 0.000 | 0.400 ± 0.000 | 0.500 ± 0.000 | - | - |" in text
    assert "- Short answers: 10 of the 10 questions" in text


def test_exact_match_of_short_answers_leaves_out_the_questions_that_nq_open_drops(
    program: dict[str, ModuleType], folder: Path
) -> None:
    path = folder / "questions/test.jsonl"
    asked = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    asked[0]["answer"] = ["0 and four more words", "0"]
    asked[1]["answer"] = ["1 and five more words here"]  # a miss, of six words
    path.write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
    text = program["page"].page(program["results"].Experiment(folder, (0,), "test"), "the command", "recipe.md", [])
    assert "- Short answers: 9 of the 10 questions" in text
    assert "| REALM | 0.400 | 0.333 | 0.500 | - | - |" in text


def test_the_page_names_the_size_of_realm_and_its_gain_on_each_file(
    program: dict[str, ModuleType], folder: Path
) -> None:
    asked = [json.loads(line) for line in (folder / "questions/all.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, one in enumerate(asked):
        one["file"] = "squad" if number < 30 else "nq"
    (folder / "questions/all.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
    rates = {"lr": 2e-4, "retriever_lr": 2e-5, "dropout": 0.0}
    for seed in (0, 1):
        write(
            folder / f"seed-{seed}/model",
            {},
            steps=800,
            batch_size=4,
            candidates=5,
            refresh="background",
            refresh_every=200,
            **rates,
        )
    text = program["page"].page(program["results"].Experiment(folder, (0, 1), "test"), "the command", "recipe.md", [])
    assert text.startswith("# Real text at laptop scale: 800 steps of REALM\n")
    assert "2e-05 for the retriever; dropout: 0; refresh: background, every 200 steps." in text
    gained, same = f"{1 / 30:+.3f} [", "+0.000 [+0.000, +0.000], above 0 on 0 of 2 seeds"
    assert f"recall@1 of REALM minus that of its start, squad: {gained}" in text
    assert f"recall@1 of REALM minus that of its start, nq: {same}" in text


def test_each_side_of_the_retriever_is_measured_apart(
    program: dict[str, ModuleType], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two questions of which the start finds the first. REALM's blocks find the second too, its questions find none."""
    asked = [
        {"question": "a", "answer": ["alpha"], "part": "train", "file": "squad"},
        {"question": "b", "answer": ["beta"], "part": "dev", "file": "nq"},
        {"question": "c", "answer": ["alpha"], "part": "test", "file": "nq"},
    ]
    (folder / "questions/all.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
    write(folder / "start/index", {})
    write(folder / "seed-0/model", {})
    questions = {"retriever": {"a": [1.0, 0.0], "b": [1.0, 0.5]}, "model": {"a": [0.0, 1.0], "b": [1.0, 0.0]}}
    blocks = {"index": [[1.0, 0.0], [0.0, 1.0]], "model": [[1.0, 0.0], [0.9, 1.0]]}

    def retriever(artifact: Artifact) -> SimpleNamespace:
        return SimpleNamespace(encode_queries=lambda texts: np.array([questions[artifact.kind][one] for one in texts]))

    class Index(list[list[float]]):
        def vectors(self, rows: Any) -> Any:
            return np.array(self)[rows]

    sides = program["sides"]
    monkeypatch.setattr(sides.LoadedRetriever, "open", retriever)
    monkeypatch.setattr(sides.LoadedIndex, "open", lambda artifact: Index(blocks[artifact.kind]))
    texts = [SimpleNamespace(text="It is Alpha."), SimpleNamespace(text="It is beta.")]
    monkeypatch.setattr(sides.realmctl, "load_blocks", lambda artifact: texts)
    lines = sides.sides(program["results"].Experiment(folder, (0,), "dev")).splitlines()
    found = {line.split(" | ")[0]: [cell.split()[0] for cell in line.split(" | ")[1:]] for line in lines[2:]}
    assert found == {
        "| blocks and questions": ["-1.000", "+0.000", "-0.500"],
        "| blocks": ["+0.000", "+1.000", "+0.500"],
        "| questions": ["-1.000", "+0.000", "-0.500"],
        "| blocks and questions, mean with the start's vectors": ["-1.000", "+0.000", "-0.500"],
    }
