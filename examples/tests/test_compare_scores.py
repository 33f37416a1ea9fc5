"""examples/compare_scores.py: scores side by side, and a line for what is missing."""

import re
import subprocess
import sys
from pathlib import Path

from realmctl.artifacts import writing
from realmctl.artifacts.manifest import Origin

PROGRAM = Path(__file__).parents[2] / "examples" / "compare_scores.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True)


def measured(folder: Path, kind: str, metrics: dict[str, float]) -> str:
    with writing(folder, Origin(kind, "eval-em", 1, {}, {})) as out:
        out.metrics.update(metrics)
    return str(folder)


def cells(*arguments: str) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in run(*arguments).stdout.splitlines()]


def test_a_row_each_and_a_dash_for_what_was_not_measured(tmp_path: Path) -> None:
    first = measured(tmp_path / "a", "scores", {"em": 0.25, "recall@1": 0.5, "questions": 8})
    second = measured(tmp_path / "b", "scores", {"em": 1.0, "questions": 9})
    assert cells(f"the first={first}", f"second={second}") == [
        ["EM", "recall@1", "questions"],
        ["the first", "0.250", "0.500", "8"],
        ["second", "1.000", "-", "9"],
    ]


def test_a_repeated_name_is_one_row_with_mean_and_standard_deviation(tmp_path: Path) -> None:
    runs = [measured(tmp_path / f"{n}", "scores", {"em": em, "questions": 8}) for n, em in enumerate([0.1, 0.3, 0.8])]
    utility = measured(tmp_path / "u", "utility", {"retrieval_utility": -0.5, "queries": 20})
    more = measured(tmp_path / "m", "scores", {"em": 0.5, "questions": 9})
    assert cells(f"a={runs[0]}", f"b={utility}", f"a={runs[1]}", f"a={runs[2]}", f"c={more}", f"c={runs[0]}") == [
        ["EM", "utility", "questions", "queries"],
        ["a", "0.400 ± 0.361", "-", "8", "-"],
        ["b", "-", "-0.500", "-", "20"],
        ["c", "0.300 ± 0.283", "-", "9/8", "-"],
    ]


def test_a_missing_artifact_is_named_in_a_line(tmp_path: Path) -> None:
    refused = run(f"with={tmp_path / 'nowhere'}")
    assert refused.returncode == 1
    assert "nowhere" in refused.stderr and "Traceback" not in refused.stderr and refused.stderr.count("\n") == 1
