"""What differs between runs, the rows over seeds with their intervals, and the forms of the table."""

from __future__ import annotations

import csv
import io
from statistics import stdev

import pytest

from realmctl.artifacts import Artifact
from realmctl.errors import MismatchError
from realmctl.extras.report.comparing import (
    STUDENT_T,
    ComparedRun,
    Comparison,
    Number,
    compare,
    comparison_csv,
    comparison_text,
    runs_at,
)
from realmctl.pipeline import Stage, reads, setting
from realmctl.pipeline.comparing import differences, known_in


class Trained(Stage):
    """A number that follows from rate and seed."""

    makes = "trained"
    headline = ("score",)
    rate: float = setting("Rate.", default=1.0)
    seed: int = setting("Seed.", default=0)

    def run(self, out):
        out.file("weights").write_text(f"{self.rate} {self.seed}")
        return {"score": 10 * self.rate + self.seed, "other": 1, "text": "x"}


class Scored(Stage):
    """Reads a trained one."""

    makes = "scored"
    headline = ("em",)
    trained: Artifact = reads("trained", help="What is scored.")
    top: int = setting("Top.", default=1)

    @classmethod
    def command(cls):
        return "scored"

    def run(self, out):
        out.file("scores").write_text(f"{self.trained.content} {self.top}")
        return {"em": self.trained.metrics["score"] / 100}


@pytest.fixture
def w(tmp_path):
    """Three seeds at two rates, each scored."""
    for rate in (1.0, 2.0):
        for seed in range(3):
            Scored(trained=Trained(rate=rate, seed=seed).make(tmp_path / "trained")).make(tmp_path / "scored")
    return tmp_path


HEADLINES = {Trained.command(): ("score",)}


def tables(w, *names, headlines=HEADLINES):
    runs = [(str(run.path.relative_to(w)), run.manifest) for run in runs_at([w / name for name in names])]
    return compare(runs, known_in([w]), headlines)


def test_seeds_are_one_row_with_mean_and_interval(w):
    [table] = tables(w, "trained")
    assert (table.settings, table.numbers) == (("rate",), ("score",))
    assert [row.settings for row in table.rows] == [{"rate": 1.0}, {"rate": 2.0}]
    first = table.rows[0].numbers["score"]
    assert first.values == (10, 11, 12) and first.mean == 11
    assert first.high - first.mean == pytest.approx(4.303 / 3**0.5)  # t of 2 degrees of freedom, deviation 1
    text = comparison_text([table])
    assert "trained/v1, v2, v3 (n = 3)" in text and "11 [8.516, 13.48]" in text


def test_a_number_that_some_runs_lack_has_its_own_count():
    row = ComparedRun(("a/v1", "a/v2", "a/v3"), {}, {"some": Number.of([1.0, 1.0]), "all": Number.of([2.0] * 3)})
    assert [row.number(name) for name in ("some", "all", "none")] == ["1 (n = 2)", "2", "-"]


def test_the_settings_of_what_runs_read_are_compared(w):
    """Scores differ in nothing of their own; what was scored differs in rate and seed."""
    [table] = tables(w, "scored", headlines={})
    assert table.settings == ("trained.rate",) and table.numbers == ("em",)
    assert [len(row.versions) for row in table.rows] == [3, 3]
    runs = [run.manifest for run in runs_at([w / "scored"])]
    unknown = differences(runs, {})
    assert list(unknown) == ["trained"] and len(set(unknown["trained"])) == 6


def test_csv_has_a_line_for_each_row(w):
    Scored(trained=w / "trained/v1", top=5).make(w / "scored")
    lines = list(csv.DictReader(io.StringIO(comparison_csv(tables(w, "scored", "trained", headlines={})))))
    assert [int(line["runs"]) for line in lines] == [3, 3, 1, 3, 3]
    assert lines[2]["top"] == "5" and lines[2]["em"] == "0.1" and lines[2]["em_low"] == ""
    assert float(lines[0]["em_low"]) < float(lines[0]["em"]) < float(lines[0]["em_high"])


def test_versions_and_folders_may_be_named(w):
    assert len(runs_at([w])) == 12 and len(runs_at([w / "trained/v1", w / "trained"])) == 6
    with pytest.raises(MismatchError, match="v1"):
        tables(w, "trained/v1")


def test_the_quantiles_are_students():
    student = pytest.importorskip("scipy.stats").t
    assert [round(float(student.ppf(0.975, n + 1)), 3) for n in range(len(STUDENT_T))] == list(STUDENT_T)
    beyond = [float(n % 7) for n in range(40)]
    half = Number.of(beyond).high - Number.of(beyond).mean
    assert half == pytest.approx(float(student.ppf(0.975, 39)) * stdev(beyond) / 40**0.5, rel=0.001)


def test_a_count_has_all_its_digits():
    assert str(Number.of([30_522.0])) == "30,522"
    assert str(Number.of([0.61251])) == "0.6125"


def test_a_share_has_an_interval_between_0_and_1_and_two_runs_have_none():
    assert Number.of([0.5, 0.63], "em") == Number(0.565, None, None, (0.5, 0.63))
    share, loss = (Number.of([0.9, 1.0, 0.95], name) for name in ("recall@5", "loss"))
    assert share.high == 1.0 and loss.high > 1.0 and share.low == loss.low
    assert Number.of([0.0, 0.1, 0.0], "cloze_recall@1").low == 0.0
    rows = tuple(
        ComparedRun(("w/v1", "w/v2", "w/v3")[:n], {}, {"em": Number.of([0.5, 0.6, 0.7][:n], "em")}) for n in (2, 3)
    )
    assert "too few" in comparison_text([Comparison("eval-em", (), ("em",), rows[:1])])
    assert "too few" not in comparison_text([Comparison("eval-em", (), ("em",), rows[1:])])
