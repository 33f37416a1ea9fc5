"""examples/compare_scores.py: scores side by side, and a line for what is missing."""

import subprocess
import sys
from pathlib import Path

from realmctl.artifact import writing
from realmctl.manifest import Origin

PROGRAM = Path(__file__).parents[2] / "examples" / "compare_scores.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True)


def test_a_row_each_and_a_dash_for_what_was_not_measured(tmp_path: Path) -> None:
    measured = {"a": {"em": 0.25, "recall@1": 0.5, "questions": 8}, "b": {"em": 1.0, "questions": 9}}
    for name, metrics in measured.items():
        with writing(tmp_path / name, Origin("scores", "eval-em", 1, {}, {})) as out:
            out.metrics.update(metrics)
    printed = run(f"first={tmp_path / 'a'}", f"second={tmp_path / 'b'}").stdout.splitlines()
    assert [line.split() for line in printed[1:]] == [
        ["first", "0.250", "0.500", "-", "-", "8"],
        ["second", "1.000", "-", "-", "-", "9"],
    ]


def test_a_missing_artifact_is_named_in_a_line(tmp_path: Path) -> None:
    refused = run(f"with={tmp_path / 'nowhere'}")
    assert refused.returncode == 1
    assert "nowhere" in refused.stderr and "Traceback" not in refused.stderr and refused.stderr.count("\n") == 1
