"""examples/wikipedia.sh: the questions that a corpus holds, the page, and a whole run at toy scale."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact
from realmctl.pipeline import pipeline_file
from realmctl.pipeline.discovery import own_stages
from stages.chunk import Chunk
from tests.fixtures.encoders import make_sentence_encoder

EXAMPLES = Path(__file__).parents[2] / "examples"
if str(EXAMPLES / "recorded") not in sys.path:
    sys.path.append(str(EXAMPLES / "recorded"))

import held_questions  # noqa: E402
import wikipedia_page  # noqa: E402
from ledger import Ledger, Record  # noqa: E402

TOWNS = ("Velford", "Lendwick", "Tremmouth")


def articles() -> list[dict[str, str]]:
    told = "The harbour of {} was built in {}. A market is held there every week. The town wall still stands."
    return [{"id": town, "title": town, "text": told.format(town, 1301 + at)} for at, town in enumerate(TOWNS)]


def question_files(folder: Path) -> dict[str, Path]:
    """The four kinds of questions. One question of each has no answer in the articles."""
    files = {name: folder / f"{name}.txt" for name in ("nq", "webq", "trec", "selqa")}
    plain = [
        {"question": f"when was the harbour of {town} built", "answer": [str(1301 + at)]}
        for at, town in enumerate(TOWNS)
    ]
    plain.append({"question": "when was the harbour built", "answer": ["1999"]})
    files["nq"].write_text("".join(json.dumps(each) + "\n" for each in plain))
    asked = [{"qId": f"q{at}", "qText": each["question"], "answers": each["answer"]} for at, each in enumerate(plain)]
    files["webq"].write_text(json.dumps(asked))
    files["trec"].write_text(
        "1\tfactoid\tWhen was the harbour of Velford built?\t130\\d\n2\tfactoid\tWhen was it?\t19\\d\\d\n"
    )
    sentences = ["The harbour of Velford was built in 1301.", "It was never built."]
    selqa = [
        {"text": "When was the harbour of Velford built?", "metadata": {"answer_sentences": [told]}}
        for told in sentences
    ]
    files["selqa"].write_text("".join(json.dumps(each) + "\n" for each in selqa))
    return files


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("articles")
    (folder / "articles.jsonl").write_text("".join(json.dumps(each) + "\n" for each in articles()))
    return Chunk(corpus=(folder / "articles.jsonl",), tokenizer="train:300", max_wordpieces=32, workers=1).make(
        folder / "blocks"
    )


def test_only_questions_whose_answer_the_corpus_holds_are_kept(blocks: Artifact, tmp_path: Path) -> None:
    kept = {}
    files = question_files(tmp_path)
    for name in ("trec", "selqa"):
        (tmp_path / name).mkdir()
        kept[name] = held_questions.held(blocks, files[name], 100, tmp_path / name)
    assert [each["answer"] for each in kept["trec"]] == [["130\\d"]]
    assert [each["answer"] for each in kept["selqa"]] == [["The harbour of Velford was built in 1301."]]


def test_the_pipeline_is_well_formed_and_measures_every_arm_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    for name in wikipedia_page.QUESTIONS:
        (tmp_path / f"{name}.jsonl").touch()
    pipeline = pipeline_file.read(EXAMPLES / "wikipedia.yaml", own_stages(), {"world": str(tmp_path)}, None)
    assert {f"{arm}.{name}" for arm in wikipedia_page.ARMS for name in wikipedia_page.QUESTIONS} <= {
        step.name for step in pipeline.steps
    }


def test_the_page_leaves_out_what_was_not_measured_and_leaves_claims_open(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "runs.jsonl")
    for arm, recall in (("orqa", 0.4), ("realm", 0.45)):
        seconds = {"blocks": 600.0, "ict.retriever": 600.0, f"{arm}.model": 180.0, f"{arm}.nq": 6000.0}
        ledger.append(
            Record(
                f"{arm}.nq", 0, "s", {"recall@5": recall, "questions": 9}, seconds, {"realmctl": "1", "processor": "P"}
            )
        )
    page = wikipedia_page.page(Ledger(tmp_path / "runs.jsonl"), "wikipedia/runs.jsonl")
    found = " ".join(page.split())
    assert "| REALM | .450 | - | - | - |" in found
    assert (
        "open: 1 of 3 seeds | +.050" in found
        and "46 claims that were written before their runs 45 are not measured, 1 is open" in found
    )
    assert "All questions together" not in found, "three sets are missing"
    other = Ledger(tmp_path / "other.jsonl")  # from another start alone
    other.append(
        Record(
            "weak-more.nq",
            0,
            "s",
            {"recall@5": 0.4, "questions": 9},
            {},
            {"realmctl": "1", "processor": "P"},
            {"batch": "3"},
        )
    )
    assert "batch=3" in wikipedia_page.page(Ledger(tmp_path / "other.jsonl"), "wikipedia/runs.jsonl")


def test_questions_of_all_sets_count_alike_and_a_claim_is_decided_by_three_seeds(tmp_path: Path) -> None:
    ledger, asked = Ledger(tmp_path / "runs.jsonl"), {"nq": 100, "webq": 50, "trec": 25, "selqa": 25}
    for seed in range(3):
        for arm, gain in (("ict", 0.0), ("orqa", 0.0), ("realm", 0.2)):
            for name, questions in asked.items():
                more = gain * (name == "nq") + 0.01 * seed * gain
                values = {f"recall@{depth}": 0.4 + more for depth in (1, 5, 20)} | {"questions": questions}
                ledger.append(
                    Record(
                        f"{arm}.{name}", seed, "s", values, {f"{arm}.{name}": 1.0}, {"realmctl": "1", "processor": "P"}
                    )
                )
    page = wikipedia_page.page(Ledger(tmp_path / "runs.jsonl"), "wikipedia/runs.jsonl")
    together = page.partition("## All questions together")[2].partition("\n## ")[0]
    assert together.count("(+.102 [") == 3, "half of the questions gain .2, and each seed a little more"
    held = page.partition("## What holds")[2].partition("\n## ")[0]
    assert "- **REALM**, minus ORQA of equal compute: recall@1 +.102 [" in held and "3 seeds" in held
    claims = {line.split(" | ")[0].strip("| "): line for line in page.splitlines() if line.startswith("| ")}
    assert "**shown**" in claims["REALM finds more than ORQA of equal compute, NQ"]
    assert "**shown**" in claims["REALM finds more than ORQA of equal compute, all questions, recall@20"]
    assert "**shown**" not in claims["REALM finds more than ORQA of equal compute, SelQA"]


def test_the_published_page_is_that_of_the_published_results() -> None:
    published = Path(__file__).parents[2] / "docs" / "results" / "wikipedia"
    notes = (EXAMPLES / "recorded" / "notes-wikipedia.md").read_text(encoding="utf-8")
    page = wikipedia_page.page(Ledger(published / "runs.jsonl"), "runs.jsonl", f"\n{notes}")
    assert page == (published / "report.md").read_text(encoding="utf-8")
    assert "**REALM**, minus ORQA" in page and "3 seeds" in page


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_script_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "articles.jsonl").write_text("".join(json.dumps(each) + "\n" for each in articles()))
    make_sentence_encoder(tmp_path / "bert", [each["text"] for each in articles()])
    toy = (
        "projection=2 practice_steps=2 ict=2 further=3 realm=2 batch=4 micro=2 candidates=3 refresh=inline refresh_every=1 "
        "cloze=2 measured=2"
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "WORDPIECES": "40", "ENCODER": str(tmp_path / "bert"), "VARS": toy}
    named = [f"{name}={path}" for name, path in question_files(tmp_path).items()]

    def run(arms: str, **more: str) -> list[Record]:
        command = ["bash", str(EXAMPLES / "wikipedia.sh"), "run", "articles.jsonl", *named]
        done = subprocess.run(
            command, cwd=tmp_path, env={**environment, "ARMS": arms, **more}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
        said.append(done.stdout + done.stderr)
        return Ledger(tmp_path / "run/runs.jsonl").records

    said: list[str] = []
    assert run("bm25 ict", MINUTES="0") == [] and "the 0 minutes are over. The same command goes on" in said[-1]

    assert {record.output for record in run("bm25 ict")} == {
        f"{arm}.{name}" for arm in ("bm25", "ict") for name in wikipedia_page.QUESTIONS
    }
    every = run("ict orqa realm stale", PLAN="1")
    assert "realm.model" in said[-1].partition("record")[0], "the forecast names each step"
    assert len(every) == 2 * 4 + 4 + 2 * 5 and len({record.key for record in every}) == len(every)
    assert "REALM on whole articles" in (tmp_path / "run/report.md").read_text()
