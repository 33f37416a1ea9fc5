"""The runner of `make bench`, on rows of the test: turns in processes of their own, the check of results, and the page."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ROW = """
from pathlib import Path
import os
import numpy as np
from row import Row, Side, equal_losses

def prepare(folder, quick):
    (folder / "input").write_text("3" if quick else "4")
    return "a number"

def times(factor, folder):
    number = float((folder / "input").read_text())
    assert os.environ["MALLOC_TRIM_THRESHOLD_"] and os.environ["OMP_NUM_THREADS"] == "1"
    return lambda: np.array([sum(number * factor for _ in range(200_000))])

def side(name, factor, **more):
    return Side(name, lambda folder: times(factor, folder), **more)

ROWS = (
    Row("toy", "adding", prepare, (side("ours", 1),), (side("peer", 1), side("absent", 1, needs=("no_such_package",)), side("old", 1, realm=True)), equal_losses(1e-6)),
    Row("alone", "adding alone", prepare, (side("ours", 1),), (), lambda ours, same: ""),
    Row("wrong", "adding wrongly", prepare, (side("ours", 1),), (side("peer", 2),), equal_losses(1e-6)),
)
"""
RUN = "import sys; sys.path.insert(0, sys.argv.pop(1)); import load; from pathlib import Path; load.ROWS = Path(sys.argv.pop(1)); import bench; bench.main()"


@pytest.fixture
def bench(tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "toy.py").write_text(ROW)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        places = ("--results", tmp_path / "speed.json", "--page", tmp_path / "speed.md")
        command = [sys.executable, "-c", RUN, BENCHMARKS, tmp_path / "rows", *arguments, *places]
        return subprocess.run([str(part) for part in command], capture_output=True, text=True)

    return run


def test_sides_take_turns_and_the_page_shows_what_was_measured(bench, tmp_path):
    done = bench("toy", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    assert "absent is left out: it needs no_such_package" in done.stderr and "--realm-python" in done.stderr
    (found,) = json.loads((tmp_path / "speed.json").read_text())
    assert (found["ours"], found["peer"], found["rounds"], found["quick"]) == ("ours", "peer", 2, False)
    assert 0 < found["least"] <= found["ratio"] <= found["most"] and found["our_mib"] > 0 and found["our_seconds"] > 0
    page = (tmp_path / "speed.md").read_text()
    assert f"**{found['ratio']:.2f}** ({found['least']:.2f} to {found['most']:.2f}, 2 rounds)" in page
    assert "| adding wrongly |" in page and "not measured yet" in page
    holds = page.partition("## What holds")[2].partition("## ")[0]
    assert sum(line.startswith("- ") for line in holds.splitlines()) == 3 and "of 1 comparisons" in holds
    assert "adding | peer" in (tmp_path / "ratios.svg").read_text() and "(ratios.svg)" in holds


def test_a_row_without_peers_shows_our_time(bench, tmp_path):
    done = bench("alone", "--quick")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads((tmp_path / "speed.json").read_text())
    assert (found["ours"], found["peer"], found["ratio"]) == ("ours", "", 0.0) and found["our_seconds"] > 0
    assert "| adding alone | a number | ours | none | 1 |" in (tmp_path / "speed.md").read_text()


def test_the_page_is_fresh(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    bench = importlib.import_module("bench")
    monkeypatch.setattr(bench, "save", lambda figure, path: None)
    monkeypatch.setattr(bench, "draw", lambda *given, **named: None)
    measured = [bench.Measured(**each) for each in json.loads(bench.RESULTS.read_text())]
    bench.write_page(measured, bench.all_rows(), tmp_path / "speed.md")
    assert (tmp_path / "speed.md").read_text() == bench.PAGE.read_text(), "run: python benchmarks/bench.py --page-only"
    holds = bench.PAGE.read_text().partition("## What holds")[2].partition("## ")[0]
    assert sum(line.startswith("- ") for line in holds.splitlines()) <= 5
    groups = bench.grouped(measured, bench.all_rows())
    alone = [each for each in measured if each.peer and each.threads == 1]
    assert sorted(each.ratio for found in groups.values() for each in found) == sorted(each.ratio for each in alone)


def test_sides_that_disagree_are_an_error(bench, tmp_path):
    done = bench("wrong", "--quick")
    assert done.returncode == 1 and "ours and peer disagree" in done.stderr
    assert not (tmp_path / "speed.json").exists()


def test_a_row_that_is_not_there(bench):
    done = bench("nothing")
    assert done.returncode == 2 and "nothing" in done.stderr
