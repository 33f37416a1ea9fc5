"""The page of `make revise`: its numbers are those of the results."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "examples" / "revise" / "make_page.py"
PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "revise"
ROWS = ("before", "after", "text_only", "some_mentions", "closed_book", "fine_tuned")


def results(seed: int, new: float) -> dict[str, Any]:
    em = {row: {"new": 0.0, "old": 0.25, "unchanged": 0.5} for row in ROWS}
    em["after"] = {"new": new, "old": 0.0, "unchanged": 0.5}
    entry = {
        "facts": 1000,
        "changed": 10,
        "asked": 10,
        "same_blocks": True,
        "same_answers_as_rebuild": 1.0,
        "em": em,
        "largest_vector_difference": 1e-6,
        "largest_vector_component": 2.0,
        "revision": {"rows": 200, "taken_over": 190, "embedded": 10, "revise": 1.0, "embed": 2.0, "build_index": 0.5},
        "rebuild": {"chunk": 1.0, "embed": 20.0, "build_index": 0.5},
        "back": {"same_blocks": True, "same_answers": 1.0},
        "seconds_of_training": {"closed_book": 9.0, "fine_tuned": 8.0},
    }
    machine = {"processor": "A CPU", "cores": 2, "realmctl": "1.0"}
    return {"seed": seed, "machine": machine, "weights_unchanged": seed != 7, "shares": {"0.01": entry}}


def run(folder: Path, *runs: dict[str, Any], seeds: int) -> subprocess.CompletedProcess[str]:
    (folder / "results").mkdir()
    for place, found in enumerate(runs):
        (folder / f"results/seed-{place}.json").write_text(json.dumps(found))
    return write_page(folder / "results", folder / "page.md", seeds)


def write_page(results: Path, page: Path, seeds: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), str(results), "--seeds", str(seeds), "--page", str(page)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_numbers_of_the_page(tmp_path: Path) -> None:
    done = run(tmp_path, results(0, 0.6), results(1, 0.8), seeds=2)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.md").read_text()
    assert "| **after: corpus, vectors and index revised** | 0.700 ± 0.141 | 0.000 ± 0.000 | 0.500 ± 0.000 |" in page
    assert "| 1 % | 10 | 10 ± 0 of 200 | 2.00 ± 0.00 | 20.00 ± 0.00 | 3.50 ± 0.00 | 21.50 ± 0.00 |" in page
    assert "| 1 % | 5.0 ± 0.0 % | 0.000 ± 0.000 → 0.700 ± 0.141 |" in page and "were the same in every seed" in page
    assert "(em.svg)" in page and "<svg" in (tmp_path / "em.svg").read_text()
    assert "[seed 1](results/seed-1.json)" in page and "- Machine: A CPU, 2 cores, one thread." in page


def test_weights_that_changed_are_told(tmp_path: Path) -> None:
    assert run(tmp_path, results(7, 0.6), seeds=1).returncode == 0
    assert "**not the same**" in (tmp_path / "page.md").read_text()


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the results of the published page are not in docs/results/revise")
def test_the_published_page_is_that_of_the_published_results(tmp_path: Path) -> None:
    page = shutil.copytree(PUBLISHED, tmp_path / "revise") / "again.md"
    seeds = len(list(PUBLISHED.glob("seed-*.json")))
    assert write_page(page.parent, page, seeds).returncode == 0
    assert page.read_text(encoding="utf-8") == (PUBLISHED / "report.md").read_text(encoding="utf-8")


def test_a_missing_seed(tmp_path: Path) -> None:
    done = run(tmp_path, results(0, 0.6), seeds=2)
    assert done.returncode == 1 and "seed-1" in done.stderr and "Traceback" not in done.stderr
