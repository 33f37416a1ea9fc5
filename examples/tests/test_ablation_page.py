"""The page as a user makes it: the same bytes each time, dashes for what is missing, every link good, damaged results refused."""

from __future__ import annotations

import io
import re
import runpy
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.fixtures.ablation import BEST, PROGRAM, RATES, TEST, Line, line, load, whole, write

SVG_LINK = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")


def run_program(results: Path, page: Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the program, in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["make_page.py", str(results), "--page", str(page)])
        patch.setattr(sys, "path", [str(PROGRAM), *sys.path])
        patch.chdir(results.parent)
        try:
            runpy.run_path(str(PROGRAM / "make_page.py"), run_name="__main__")
        except SystemExit as left:
            code = int(left.code or 0)
    return code, out.getvalue(), err.getvalue()


def page_of(lines: list[Line], folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    code, out, err = run_program(write(folder / "runs.jsonl", lines), folder / "page.md")
    assert (code, err) == (0, "")
    text = (folder / "page.md").read_text(encoding="utf-8")
    assert out.splitlines()[0] in text.splitlines()
    return text


def rows(text: str) -> dict[str, list[list[str]]]:
    """{first cell: the other cells of each table row that begins with it}."""
    found: dict[str, list[list[str]]] = {}
    for each in text.splitlines():
        if each.startswith("| "):
            first, *others = (cell.strip() for cell in re.split(r"(?<!\\)\|", each.strip("|")))
            found.setdefault(first, []).append(others)
    return found


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(whole(), tmp_path_factory.mktemp("whole"))


def test_numbers_of_a_whole_file(text: str) -> None:
    tuned, seeds = rows(text)["ORQA"][1], rows(text)["ORQA"][2]
    row = rows(text)["ORQA"][0]
    # by hand: EM .58 to .62 on the five seeds has sd .0158; REALM is .2 ahead on each
    assert row[:3] == [BEST, "5", ".600 ± .016"]
    assert row[5:9] == ["+.200 [+.200, +.200]", "5", "0", "shown"] and row[9:] == [".313", ".139"]
    assert tuned == ["ICT", ".500 (.500 .500)", "**.600** (.600 .600)", ".500 (.500 .500)"]
    assert seeds == [".580", ".590", ".600", ".610", ".620"]
    assert rows(text)["Pre-training helps"] == [["EM, REALM - ORQA", "+.200 [+.200, +.200]", "5", "0", "**shown**"]]
    assert rows(text).keys() >= {arm.label for arm in load("arms").ARMS}
    assert rows(text)[BEST][0] == ["6", "33", "2", ".800", ".420", ".006", ".900"]
    assert "## Limits" in text and "notes.md" in text
    planned = 16 * 6, 20 * 5
    assert f"{planned[0]} of {planned[0]} planned runs on dev seeds and {planned[1]} of {planned[1]}" in text


def test_same_bytes_whatever_the_order_of_the_lines(tmp_path: Path) -> None:
    page_of(whole(), tmp_path / "first")
    (tmp_path / "second").mkdir()
    results = write(tmp_path / "second/runs.jsonl", whole()[::-1])
    program = [sys.executable, "-B", str(PROGRAM / "make_page.py"), results, "--page", results.with_name("page.md")]
    subprocess.run(program, check=True, capture_output=True, cwd=results.parent)  # a process has hash seeds of its own
    first, second = (
        sorted(path for path in (tmp_path / name).glob("*.*") if path.suffix != ".jsonl")
        for name in ("first", "second")
    )
    assert [path.name for path in first] == ["arms.svg", "page.md", "recall.svg", "staleness.svg", "utility.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_every_plot_named_is_there(text: str, tmp_path: Path) -> None:
    links = SVG_LINK.findall(page_of(whole(), tmp_path))
    assert len(links) == 4 and all("<svg" in (tmp_path / link).read_text(encoding="utf-8") for link in links)
    staleness = (tmp_path / "staleness.svg").read_text(encoding="utf-8")
    assert all(f">{period}<" in staleness for period in ("6", "18", "60", "never", *RATES))


def test_what_is_missing_is_a_dash_and_counted(tmp_path: Path) -> None:
    dev = [each for each in whole() if each["split"] == "dev"]
    some = [
        line("realm", seed=TEST[0], em=0.9),
        line("realm", seed=TEST[1], em=0.7),
        line("bm25", seed=TEST[1], em=0.4),
    ]
    text = page_of(dev + some, tmp_path)
    assert rows(text)["REALM"][0][1:3] == ["2", ".800 ± .141"]
    assert rows(text)["BM25"][0][1:3] == ["1", ".400"] and rows(text)["BM25"][0][5:9] == [
        "+.300 [one seed]",
        "1",
        "0",
        "open: 1 of 5 seeds",
    ]
    assert rows(text)["ORQA"][0][1:9] == ["0", *["-"] * 7]


def test_collapsed_runs_and_their_alarms_are_counted(tmp_path: Path) -> None:
    def ends_at(seed: int, recall: float, **alarms: int) -> Line:
        swaps = {"recall@5": [0.6, None, recall], "index_drift": [None, 0.1, 0.1], "index_overlap": [None, 0.9, 0.9]}
        training = {"steps": [1, 9, 16], "swaps": swaps, "refresh_every": 8, "utility": [], "alarms": alarms}
        return line("random-span", seed=seed, em=0.1, rate="1e-3", split="dev", training=training)

    text = page_of(
        [ends_at(23, 0.3, hub_block=2, recall_lost=1), ends_at(24, 0.31, hub_block=1, no_utility=0)], tmp_path
    )
    assert "1 of 2 runs collapsed, and 1 of these raised an alarm. 1 of the other 1 runs raised one too." in text
    assert ["1e-3", "2", "1", "hub_block 1, recall_lost 1", "hub_block 1"] in rows(text)["random span masks"]


def test_nothing_run_yet(tmp_path: Path) -> None:
    (tmp_path / "recall.svg").write_text("of another run")
    text = page_of([], tmp_path)
    assert not SVG_LINK.findall(text) and not list(tmp_path.glob("*.svg"))
    assert "It has 0 of 96" in text and "Nothing has run yet." in text and "No pre-training has run yet." in text


def test_the_newest_line_counts(tmp_path: Path) -> None:
    dev = [each for each in whole() if each["split"] == "dev"]
    text = page_of([*dev, line("realm", seed=25, em=0.1), line("realm", seed=25, em=0.5)], tmp_path)
    assert rows(text)["REALM"][0][1:3] == ["1", ".500"]


@pytest.mark.parametrize(
    "damaged", ["{", "[]", '{"split": "dev"}', '{"split": "dev", "arm": "realm", "rate": "1", "seed": 1}']
)
def test_a_damaged_line_is_refused(damaged: str, tmp_path: Path) -> None:
    results = write(tmp_path / "runs.jsonl", [line("realm", seed=25, em=0.5)])
    results.write_text(results.read_text() + damaged + "\n")
    code, _, err = run_program(results, tmp_path / "page.md")
    assert code == 3 and "line 2 is not a run" in err and not (tmp_path / "page.md").exists()


def test_runs_of_different_settings_are_refused(tmp_path: Path) -> None:
    results = write(
        tmp_path / "runs.jsonl", [line("realm", seed=25, em=0.5), line("realm", seed=26, em=0.5, settings="others")]
    )
    code, _, err = run_program(results, tmp_path / "page.md")
    assert code == 4 and "25 and 26 have different settings" in err


def test_a_page_without_suffix_is_refused(tmp_path: Path) -> None:
    code, _, err = run_program(write(tmp_path / "runs.jsonl", []), tmp_path / "page")
    assert code == 2 and "page.md" in err


def test_an_old_index_is_compared_with_the_freshest_of_the_same_rate_and_seed(tmp_path: Path) -> None:
    def with_overlap(arm: str, seed: int, overlap: float, recall: float, rate: str = "5e-4") -> Line:
        swaps = {"recall@5": [recall], "index_drift": [0.1], "index_overlap": [overlap]}
        training = {"steps": [1, 16], "swaps": swaps, "refresh_every": 8, "utility": [], "alarms": {}}
        made = line(arm, seed=seed, em=0.1, rate=rate, split="dev", training=training)
        return {**made, "scores": {**made["scores"], "recall@5": recall}}

    lines = [
        with_overlap("realm", 23, 0.95, 0.8),
        with_overlap("refresh-never", 23, 0.4, 0.6),  # costs .2
        with_overlap("refresh-10x", 23, 0.45, 0.7),  # costs .1
        with_overlap("refresh-3x", 23, 0.9, 0.8),
        with_overlap("refresh-never", 24, 0.4, 0.1),  # its fresh run is missing
    ]
    found = rows(page_of(lines, tmp_path))
    assert found["below .500"] == [["2", "-.150", "-.200"]] and found[".750 or more"] == [["1", "+.000", "+.000"]]
