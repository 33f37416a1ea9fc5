"""The program as a user runs it: a whole page, the same one each time, dashes for what is missing, and every link good."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from realmctl.artifacts import version_numbers
from tests.fixtures.ablation import EM, PROGRAM, artifacts_of, load, write_output, write_scores, write_whole_run

SEEDS = 3
SVG_LINK = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    for seed in range(SEEDS):
        write_whole_run(folder, seed)
    return folder


def run_program(folder: Path, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", str(PROGRAM / "make_page.py"), str(folder), "--page", str(page), *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def page_of(folder: Path, out: Path, *options: str) -> str:
    done = run_program(folder, out, "--seeds", str(SEEDS), *options)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    text = out.read_text(encoding="utf-8")
    assert done.stdout.splitlines()[0] in text.splitlines()
    return text


def rows(text: str) -> dict[str, list[list[str]]]:
    """{first cell: the other cells of each table row that begins with it}."""
    found: dict[str, list[list[str]]] = {}
    for line in text.splitlines():
        if line.startswith("| "):
            first, *others = (cell.strip() for cell in line.strip("|").split("|"))
            found.setdefault(first, []).append(others)
    return found


def test_reads_what_the_pipeline_makes_and_all_of_it() -> None:
    """The arms' names stand in both; here they are held together."""
    stages = yaml.safe_load((PROGRAM.parent / "ablation.yaml").read_text(encoding="utf-8"))["stages"]
    made = {name for name, entry in stages.items() if entry["stage"] in ("eval-em", "eval-utility")}
    arms = load("arms")
    read = {arm.scores for arm in arms.ARMS} | {arm.before for arm in arms.ARMS} - {"closed-book-zero-shot"}
    read |= {*arms.MEASURED_ON_HELD_OUT, *arms.MEASURED_ON_STRANGERS, load("page").CLOSED_BOOK_SEEN}
    assert made == read
    plots = load("plots")
    assert {arm.key for arm in (*plots.MASKING, *plots.REFRESHING)} <= stages.keys()


def test_numbers_of_a_finished_ablation(finished: Path, tmp_path: Path) -> None:
    text = page_of(finished, tmp_path / "page.md", "--command", "make ablation SEEDS=3")
    arms, seeds = rows(text)["ORQA"]
    recall = ".105 ± .000", ".125 ± .000", ".273 ± .005", ".284 ± .005"
    # by hand: EM .55 - .01 s against .75 + .01 s; .2, .22, .24 have mean .22, sd .02, t(.975, 2) sd / sqrt(3) = .0497
    assert arms == ["3", ".540 ± .010", *recall, "+.220 [+.170, +.270]", "3 of 3", ".313", ".139"]
    assert seeds == [".550", ".540", ".530"]
    assert rows(text)["closed book"][0][2:6] == ["-"] * 4
    assert "EM .300 ± .000, n = 3" in text
    assert text.count("`make ablation SEEDS=3`") == 2
    assert rows(text).keys() >= {arm.label for arm in load("arms").ARMS}
    assert {arm.key for arm in load("arms").ARMS} == set(EM)


def test_seeds_from_another_first_one(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = run_program(finished, page, "--first-seed", "1", "--seeds", "2")
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert "- Seeds: 1, 2\n" in text
    assert rows(text)["ORQA"][1] == [".540", ".530"]  # of the three above, without the first


def test_same_bytes_each_time(finished: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        page_of(finished, tmp_path / name / "page.md")
    first, second = (sorted(path for path in (tmp_path / name).rglob("*.*")) for name in ("first", "second"))
    assert [path.name for path in first] == ["age.svg", "recall.svg", "refresh.svg", "utility.svg", "page.md"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_every_plot_named_is_there_and_is_svg(finished: Path, tmp_path: Path) -> None:
    links = SVG_LINK.findall(page_of(finished, tmp_path / "page.md"))
    assert len(links) == 4
    for link in links:
        assert "<svg" in (tmp_path / link).read_text(encoding="utf-8")
    assert {path.name for path in (tmp_path / "page").iterdir()} == {Path(link).name for link in links}
    refresh = (tmp_path / "page" / "refresh.svg").read_text(encoding="utf-8")
    assert re.findall(r">(10|100|300|never)<", refresh) == ["10", "100", "300", "never"] * 2


def test_what_is_missing_is_a_dash_and_counted(tmp_path: Path) -> None:
    write_whole_run(tmp_path, 0)
    write_scores(tmp_path, 1, "realm", 0.9)
    write_scores(tmp_path, 1, "bm25", 0.3)
    (artifacts_of(tmp_path, 1) / "orqa-scores" / "v1.partial").mkdir(parents=True)
    text = page_of(tmp_path, tmp_path / "page.md")
    assert rows(text)["ORQA"] == [
        ["1", ".550", ".105", ".125", ".278", ".289", "+.200 [one seed]", "1 of 1", ".313", ".139"],
        [".550", "-", "-"],
    ]
    assert rows(text)["BM25"][0][:4] == ["2", ".400 ± .141", ".105 (n = 1)", ".125 (n = 1)"]
    assert rows(text)["REALM"][1] == [".750", ".900", "-"]


def test_nothing_run_yet(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "age.svg").write_text("of another run")
    text = page_of(tmp_path, tmp_path / "page.md")
    paper = [".313", ".139"]
    assert rows(text)["ORQA"] == [["0", *["-"] * 7, *paper], ["-", "-", "-"]]
    assert not SVG_LINK.findall(text) and not list((tmp_path / "page").iterdir())


def test_newest_version_counts(tmp_path: Path) -> None:
    write_scores(tmp_path, 0, "realm", 0.5)
    series = artifacts_of(tmp_path, 0) / "realm-scores"
    (series / "v1").rename(series / "v2")
    write_scores(tmp_path, 0, "realm", 0.1)
    assert version_numbers(series) == [1, 2]
    assert rows(page_of(tmp_path, tmp_path / "page.md"))["REALM"][1] == [".500", "-", "-"]


def test_scores_on_different_questions_are_refused(tmp_path: Path) -> None:
    write_scores(tmp_path, 0, "realm", 0.5)
    write_output(tmp_path, 0, "orqa-scores", {"em": 0.4}, questions="of the dev split")
    done = run_program(tmp_path, tmp_path / "page.md", "--seeds", "1")
    assert done.returncode == 4
    assert "orqa-scores and realm-scores were measured on different questions" in done.stderr
    assert not (tmp_path / "page.md").exists()


def test_a_page_without_suffix_is_refused(tmp_path: Path) -> None:
    done = run_program(tmp_path, tmp_path / "page", "--seeds", "1")
    assert done.returncode == 2 and "page.md" in done.stderr
