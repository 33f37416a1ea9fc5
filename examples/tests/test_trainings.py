"""Whether a measure without labels tells that a student gained: its table from results, and a tiny run."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.append(str(Path(__file__).parents[2] / "examples" / "teacher"))

import teachers
import trainings as run

from realmctl.artifacts import open_artifact
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures.blocks import make_blocks
from tests.fixtures.cross_encoders import make_cross_encoder
from tests.fixtures.encoder_folders import folder_for
from tests.fixtures.language_models import make_babbler

MANY = 40
ARMS = {"dense": ("student", "encoder"), "profile": ("student-best", "best")}


def people_line(domain: str, arm: str, value: float, seed: int = 0) -> dict[str, object]:
    taught = {"teacher": "t"} if arm.startswith("student") else {}
    return {
        **taught,
        "domain": domain,
        "split": "test",
        "encoder": "e",
        "arm": arm,
        "seed": seed,
        "ndcg": [value] * MANY,
    }


def results_of(changes: dict[str, dict[str, tuple[float, float, float]]], seeds: int = 3):
    """Lines of both results. changes: {domain: {search: differences by people, sentences and written questions}}."""
    people, told = [], []
    for domain, of in changes.items():
        for search, (truth, *measured) in of.items():
            student, start = ARMS[search]
            people += [people_line(domain, start, 0.5)]
            people += [people_line(domain, student, 0.5 + truth, seed) for seed in range(seeds)]
            for measure, value in zip((run.SENTENCES, run.WRITTEN), measured, strict=True):
                place = {"domain": domain, "search": search, "measure": measure}
                told += [{**place, "seed": None, "ndcg": [0.4] * 9}]
                told += [{**place, "seed": seed, "ndcg": [0.4 + value] * 9} for seed in range(seeds)]
    return people, told


def rows_of(page: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]


CHANGES = {
    "towns": {"dense": (0.10, -0.02, 0.05), "profile": (0.04, 0.01, 0.03)},
    "rivers": {"dense": (-0.06, 0.03, -0.04), "profile": (0.02, -0.01, 0.02)},
}


def test_the_table_counts_what_a_measure_is_right_of_and_what_its_choice_brings():
    rows = rows_of(run.table(run.changes(*results_of(CHANGES), "t")))
    assert [
        "towns test",
        "dense",
        *("+0.100 [+0.100, +0.100]", "-0.020 [-0.020, -0.020]", "+0.050 [+0.050, +0.050]"),
    ] in rows
    of = np.array([values for searches in CHANGES.values() for values in searches.values()])
    by_name = {row[0]: row[1:] for row in rows[-5:]}
    for place, name in ((1, "Pieces of sentences"), (2, "Questions of a language model")):
        told = stats.spearmanr(of[:, 0], of[:, place]).statistic
        right = int(((of[:, 0] > 0) == (of[:, place] > 0)).sum())
        brought = np.where(of[:, place] > 0, of[:, 0], 0).mean()
        verdict = "reached" if right == 4 and told >= 0.6 else "missed"
        assert by_name[name] == [
            f"{right} of 4",
            f"{told:+.2f}",
            verdict,
            f"{(of[:, place] > 0).sum()} of 4",
            f"{brought:+.3f}",
        ]
    assert by_name["Questions of a language model"][2] == "reached"
    assert by_name["none: every student is kept"][-2:] == ["4 of 4", "+0.025"]
    assert by_name["people's questions"][-2:] == ["3 of 4", "+0.040"]


def test_a_gain_that_is_not_shown_keeps_no_student_and_is_no_fault_of_a_measure():
    people, told = results_of({"towns": {"dense": (0.1, 0.1, 0.1)}, "rivers": {"dense": (0.1, 0.1, 0.1)}})
    spread = np.linspace(-0.4, 0.41, MANY) + 0.5
    people = [
        {**each, "ndcg": spread.tolist()} if each["domain"] == "rivers" and each["arm"] == "student" else each
        for each in people
    ]
    told = [
        {**each, "ndcg": [0.9, *[0.3] * 8]} if each["domain"] == "towns" and each["seed"] is not None else each
        for each in told
    ]  # the mean falls, and no interval leaves out 0
    rows = {row[0]: row[1:] for row in rows_of(run.table(run.changes(people, told, "t")))[-5:]}
    assert rows["Pieces of sentences"][0] == "0 of 1" and rows["Pieces of sentences"][3] == "1 of 2"


def test_results_of_another_teacher_and_of_too_few_seeds_are_told_apart():
    people, told = results_of(CHANGES, seeds=2)
    other = [{**each, "teacher": "other", "ndcg": [0.0] * MANY} for each in people if "teacher" in each]
    found = run.changes([*people, *other], told, "t")
    assert found == run.changes(people, told, "t")
    assert run.table(found).endswith("Not whole: students have 2 to 2 seeds, and the rules ask for 3.")
    assert "Not whole" not in run.table(run.changes(*results_of(CHANGES), "t"))
    only = run.changes(people, [each for each in told if each["domain"] == "towns"], "t")
    assert {name for name, _ in only} == {"towns test"}


@pytest.mark.slow
def test_a_tiny_run_leaves_out_what_the_lesson_asked_and_a_second_one_measures_nothing(tmp_path, monkeypatch, capsys):
    towns = ["Velford", "Stonebridge", "Harrow", "Milton", "Ashby", "Kenmore", "Tarrant", "Lowick"]
    texts = [
        f"{town} is a town in the north. The river of {town} is long, and it is cold in the winter." for town in towns
    ]
    folder = tmp_path / "towns"
    (folder / "qrels").mkdir(parents=True)
    rows = [
        {"_id": f"p{n}", "title": town, "text": text} for n, (town, text) in enumerate(zip(towns, texts, strict=True))
    ]
    asked = [{"_id": f"q{n}", "text": f"Where is {town}?"} for n, town in enumerate(towns)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    lines = [f"q{n}\tp{n}\t1\n" for n in range(len(towns))]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    blocks = make_blocks(tmp_path / "blocks", {"T": [[text] for text in texts]})
    encoder, lm, teacher = (
        folder_for(blocks, tmp_path / "encoder"),
        make_babbler(tmp_path / "lm"),
        make_cross_encoder(tmp_path / "teacher", Tokenizer.load(blocks.path)),
    )
    people, results = tmp_path / "people.jsonl", tmp_path / "told.jsonl"
    shared = ["--encoder", encoder, "--teacher", teacher, "--lm", lm, "--workspace", tmp_path / "w", "--seeds", "2"]
    shared += ["--student-steps", "1", "--questions", "3", "--domain", f"towns={folder}"]
    arms = ["encoder", "best", "student", "student-best"]
    teach = ["teachers.py", *shared, "--results", people, "--arms", *arms]
    told = ["trainings.py", *shared, "--people", people, "--results", results]
    real = teachers.lesson_queries
    for module in (teachers, run):
        monkeypatch.setattr(module, "lesson_queries", lambda bench, lesson: real(bench, replace(lesson, lm=None)))
    monkeypatch.setattr(run, "asked", asked_of_every_block)
    monkeypatch.setattr(sys, "argv", [*map(str, teach)])
    teachers.main()
    monkeypatch.setattr(sys, "argv", [*map(str, told)])
    capsys.readouterr()
    run.main()
    records = [json.loads(line) for line in results.read_text().splitlines()]
    assert {(each["search"], each["measure"], each["seed"]) for each in records} == {
        (search, measure, seed) for search in ARMS for measure in (run.SENTENCES, run.WRITTEN) for seed in (None, 0, 1)
    }
    made = tmp_path / "w" / "encoder" / "towns"
    held, taught = ({*run.relevant(open_artifact(made / name / "v1")).values()} for name in ("held", "queries"))
    assert held & taught and {len(each["ndcg"]) for each in records} == {len(held - taught)}
    assert "| towns test | dense |" in capsys.readouterr().out
    before = results.read_text()
    run.main()
    assert results.read_text() == before


def asked_of_every_block(bench, lm):
    """A piece of each block for both measures: what the babbler writes has no word of a block."""
    cut = bench.made("cut-queries", "held", blocks=bench.blocks, sample=8, seed=1)
    return {run.SENTENCES: cut, run.WRITTEN: cut}
