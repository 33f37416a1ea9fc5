"""examples/changed.sh: what is mined from two dumps of the same articles, and a whole run on a tiny one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.encoders import make_sentence_encoder

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.append(str(EXAMPLES / "revise"))

import mine  # noqa: E402
import real_page  # noqa: E402

PORTS = ("Velford", "Lendwick", "Tremmouth", "Wamley", "Klim", "Orsted")
FILLER = "The people of the town have always lived by the sea and they know the winds."


def article(number: int, piers: int, when: int, more: str = "") -> dict[str, str]:
    name = PORTS[number]
    told = [
        "Harbour and trade.",  # a heading: too short a line to count
        f"In the old harbour of {name} there are {piers} piers where ships land all year. {FILLER}",
        f"The town wall of {name} was built by hand in {when} and still stands today. {FILLER}{more}",
        f"A market with 70 stalls is held there every week of the year in summer. {FILLER}",
    ]
    return {"id": str(number), "title": name, "text": "\n".join(told)}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("dumps")
    older = [article(number, 10 + number, 1310 + 3 * number) for number in range(6)]
    newer = [article(number, 50 + number, 1310 + 3 * number, " It was painted.") for number in range(5)]
    newer[1]["text"] = newer[1]["text"].replace("51 piers", "11.0 piers")  # the same figure in another form
    newer.append({"id": "9", "title": "Elsewhere", "text": article(5, 3, 4)["text"]})
    for name, articles in (("older", older), ("newer", newer)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in articles), encoding="utf-8")
    return folder / "older.jsonl", folder / "newer.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def pairs(dumps: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pairs")
    asked = (
        {"title": "Lendwick", "answer_sentences": []},
        {
            "title": "Tremmouth",
            "answer_sentences": ["In the old harbour of Tremmouth there are 12 piers where ships land all year."],
        },
    )
    questions = out / "asked-by-people.jsonl"
    questions.write_text("".join(json.dumps({"text": "Piers?", "metadata": each}) + "\n" for each in asked))
    mine.mine(*dumps, out / "pairs", 0, 1000, questions, seed=0)
    return out / "pairs"


def test_a_fact_has_changed_where_one_figure_differs(pairs: Path) -> None:
    changed = lines(pairs / "changed.jsonl")
    assert [(each["document"], each["old"], each["new"]) for each in changed] == [("2", "12", "52"), ("3", "13", "53")]
    for each in changed:
        assert each["old"] in each["old_sentence"] and each["new"] in each["new_sentence"]
        assert "how many piers" in each["question"] and each["new"] not in each["question"]
    assert [each["new"] for each in lines(pairs / "asked.jsonl")] == ["52"]


def test_training_questions_are_of_other_articles(pairs: Path) -> None:
    trained = {each["document"] for each in lines(pairs / "train.jsonl")}
    asked = {each["document"] for name in ("changed", "unchanged") for each in lines(pairs / f"{name}.jsonl")}
    assert trained and asked and not trained & asked
    texts = {each["id"]: each["text"] for each in lines(pairs / "newer.jsonl")}
    for each in lines(pairs / "unchanged.jsonl"):
        assert each["answer"][0] in each["sentence"] and each["sentence"] in texts[each["document"]]


def test_the_edits_lead_from_the_older_articles_to_the_newer(pairs: Path) -> None:
    edited = {each["id"]: each["text"] for each in lines(pairs / "edits.jsonl")}
    after = [each | {"text": edited.get(each["id"], each["text"])} for each in lines(pairs / "older.jsonl")]
    assert after == lines(pairs / "newer.jsonl") and len(after) == 5
    assert not any("Harbour and trade" in each["text"] for each in after)
    counts = json.loads((pairs / "counts.json").read_text())
    assert (counts["articles"], counts["facts_changed"], counts["sentences"]) == (5, 4, 35)


def results(kept: int) -> dict[str, Any]:
    def found(new: float, old: float) -> dict[str, Any]:
        depths = [{"1": value, "5": value + 0.1, "20": 1.0} for value in (new, old, 0.7)]
        return dict(zip(("new", "old", "unchanged"), depths, strict=True))

    em = {"before": (0.0, 0.5, 0.6), "after": (0.45, 0.01, 0.61)}
    pairs = {
        "articles": 1000,
        "articles_changed": 990,
        "paragraphs": 100,
        "paragraphs_kept": 25,
        "sentences": 2000,
        "sentences_kept": 1200,
        "facts_changed": 33,
        "articles_with_changed_facts": 30,
        "drawn": 12,
        "drawn_for_training": 4,
    }
    return {
        "command": "examples/changed.sh A B C",
        "machine": {"processor": "A CPU", "cores": 2, "realmctl": "1.0"},
        "pairs": pairs,
        "asked": {"changed": 20, "unchanged": 50},
        "max_wordpieces": 96,
        "blocks": {"older": 190, "newer": 200, "kept": kept},
        "seconds": {"chunk": 1.0, "revise": 1.5, "older": {"embed": 20.0, "build_index": 0.5}},
        "same_blocks": kept != 7,
        "found": {"bm25": {"before": found(0.02, 0.6), "after": found(0.61, 0.03)}},
        "people_asked": {"questions": 3, "bm25": {"before": found(0.0, 0.5), "after": found(0.5, 0.0)}},
        "reader": {
            "steps": 30,
            "trained_on": 80,
            "em": {when: dict(zip(("new", "old", "unchanged"), values, strict=True)) for when, values in em.items()},
            "weights_unchanged": kept != 7,
        },
    }


def test_the_page_has_the_numbers_of_the_results_and_says_what_is_missing() -> None:
    measured = results(150)
    page = real_page.page(measured, "changed-corpus.json")
    claims = page.split("## What holds")[1].split("##")[0]
    assert "25.0 % of the blocks" in claims and "40.0 % of all sentences" in claims and "CPU seconds" not in claims
    assert "0.020 of the changed facts before and 0.610 after" in claims and "is 0.000 before and 0.450 after" in claims
    assert "| BM25 | after | 0.610 | 0.710 | 0.030 | 0.130 | 0.700 | 0.800 |" in page and "| dense |" not in page
    assert "`embed --former` | 200 | 50 | 1.5 | not measured yet | not measured yet |" in page
    assert "the same content hash" in page and "0.100 of them before and 0.600 after" in page

    measured["seconds"]["revised"] = {"embed": 2.0, "build_index": 0.5}
    page = real_page.page(measured, "changed-corpus.json")
    assert "took 2 CPU seconds, and 20 for all 190 blocks" in page and "| 200 | 50 | 1.5 | 2.0 | 0.5 |" in page


def test_the_page_says_what_is_not_the_same() -> None:
    page = real_page.page(results(7), "changed-corpus.json")
    assert "**another** content hash" in page and "**not the same**" in page


PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "changed-corpus"


@pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the results of the published page are not in docs/results/changed-corpus"
)
def test_the_published_page_is_that_of_the_published_results() -> None:
    measured = json.loads((PUBLISHED / "results.json").read_text(encoding="utf-8"))
    notes = (EXAMPLES / "revise" / "notes-real.md").read_text(encoding="utf-8")
    page = real_page.page(measured, "results.json", f"\n{notes}")
    assert page == (PUBLISHED / "report.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_script_and_that_a_second_run_measures_nothing_anew(dumps: tuple[Path, Path], tmp_path: Path) -> None:
    make_sentence_encoder(tmp_path / "bert", [each["text"] for path in dumps for each in lines(path)])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    sizes = {"ARTICLES": "0", "WORDPIECES": "64", "STEPS": "2", "ENCODER": str(tmp_path / "bert"), "PATH": path}
    command = ["bash", str(EXAMPLES / "changed.sh"), "run", *map(str, dumps)]
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **sizes}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        found = json.loads((tmp_path / "run/changed-corpus.json").read_text())
        assert found["same_blocks"] and found["reader"]["weights_unchanged"]
        assert 0 <= found["blocks"]["kept"] < found["blocks"]["newer"] == found["seconds"]["revised"]["rows"]
        assert found["found"]["bm25"]["before"]["new"]["20"] == 0 == found["found"]["bm25"]["after"]["old"]["20"]
        assert found["found"]["bm25"]["before"]["old"]["5"] == 1 == found["found"]["bm25"]["after"]["new"]["5"]
        assert found["seconds"] == json.loads((tmp_path / "run/seconds.json").read_text())
    assert "articles with the same text" in (tmp_path / "run/report.md").read_text()
