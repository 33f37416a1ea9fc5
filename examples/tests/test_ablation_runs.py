"""What a run is known by: the hash of its settings; and what its line says, against a log written by hand."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from realmctl.artifacts import Origin, open_artifact, writing
from realmctl.errors import ConfigError
from tests.fixtures.ablation import line, load

arms = load("arms")
grid = load("grid")
measurements = load("measurements")
results = load("results")
run = load("run")

TOY = grid.Grid(
    rates=("1e-3", "2e-3"),
    first_rates=("1e-3", "2e-3"),
    seeds={"dev": (3,), "test": (4,)},
    practice={"size": "small", "seed": 9},
    worlds={name: {"size": "small", "parallel-worlds": 0} for name in grid.read_grid().worlds},
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with its worlds, and nothing trained."""
    made: Path = tmp_path_factory.mktemp("ablation")
    run.Workplace(made, TOY, {}).pipeline("dev", 3, "1e-3")
    return made


def hashes(folder: Path, split: str = "dev", rate: str = "1e-3", **variables: str) -> dict[str, str]:
    place = run.Workplace(folder, TOY, variables)
    return {arm.key: place.settings(arm, split, rate) for arm in arms.ARMS}


def test_every_arm_is_in_the_pipeline_and_known_by_its_settings(folder: Path, tmp_path: Path) -> None:
    found = hashes(folder)
    assert len(set(found.values())) == len(arms.ARMS)
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert hashes(tmp_path / "elsewhere") == found
    assert not set(hashes(folder, rate="2e-3").values()) & set(found.values())
    assert not set(hashes(folder, split="test").values()) & set(found.values())


@pytest.mark.parametrize(
    ("variable", "concerned"),
    [
        ("refresh_10x", {"refresh-10x"}),
        ("long_ict_steps", {"orqa", "orqa-joint"}),
        ("practice_steps", {arm.key for arm in arms.ARMS}),
    ],
)
def test_a_setting_concerns_the_arms_that_it_reaches(folder: Path, variable: str, concerned: set[str]) -> None:
    before, after = hashes(folder), hashes(folder, **{variable: "7"})
    assert {key for key in before if before[key] != after[key]} == concerned


def test_an_unknown_variable_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"--var step.*qa_steps"):
        run.Workplace(folder, TOY, {"step": "7"})


def test_other_worlds_are_other_settings(folder: Path) -> None:
    place = run.Workplace(folder, TOY, {})
    steps = run.steps_of(arms.REALM, place.pipeline("dev", 3, "1e-3"))
    larger = replace(TOY, worlds={**TOY.worlds, "world": {"size": "third"}})
    assert measurements.settings_hash(folder, steps, TOY) != measurements.settings_hash(folder, steps, larger)


def test_runs_that_are_there_are_not_missing(folder: Path, tmp_path: Path) -> None:
    place, file = run.Workplace(folder, TOY, {}), tmp_path / "deep" / "runs.jsonl"
    assert len(run.missing(place, "dev", file, arms.ARMS, (3,))) == 2 * sum(not arm.rate_of for arm in arms.ARMS)
    settings = place.settings(arms.REALM, "dev", "1e-3")
    results.append_line(file, line("realm", seed=3, em=0.5, split="dev", rate="1e-3", settings="older"))
    assert len(run.missing(place, "dev", file, [arms.REALM], (3,))) == 2
    results.append_line(file, line("realm", seed=3, em=0.6, split="dev", rate="1e-3", settings=settings))
    assert [(left.rate, left.seed) for left in run.missing(place, "dev", file, [arms.REALM], (3,))] == [("2e-3", 3)]
    assert run.missing(place, "test", file, [arms.REALM], (4,)) == []  # its grid is not whole
    assert [each["scores"]["em"] for each in results.read_lines(file)] == [0.5, 0.6]


def test_a_log_in_short(tmp_path: Path) -> None:
    log: list[dict[str, Any]] = [{"step": step, "top_1_utility": step / 10} for step in range(1, 41)]
    log[0] |= {"recall@5": 0.1}
    log[20] |= {"recall@5": 0.2, "index_overlap": 0.9, "index_drift": 0.0123456}
    log.append({"step": 40, "recall@5": 0.3, "index_overlap": 1.0, "index_drift": 0.0})
    origin = Origin("model", "pretrain", 1, {"refresh": "inline", "refresh_every": 20}, {})
    with writing(tmp_path / "v1", origin) as out:
        out.metrics.update({"alarms": {"hub_block": 2}})
        out.file("metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in log))
    short = measurements.training_in_short(open_artifact(tmp_path / "v1"))
    assert short["steps"] == [1, 21, 40] and short["refresh_every"] == 20 and short["alarms"] == {"hub_block": 2}
    assert short["swaps"]["recall@5"] == [0.1, 0.2, 0.3] and short["swaps"]["recall@1"] == [None] * 3
    assert short["swaps"]["index_drift"] == [None, 0.01235, 0.0]
    assert short["utility"] == pytest.approx([(2 * k + 1.5) / 10 for k in range(20)])  # means of two steps each


@pytest.mark.parametrize(
    ("best", "tried", "chosen"),
    [
        ("2e-3", ("1e-3", "2e-3", "4e-3"), "2e-3"),
        ("8e-3", ("1e-3", "2e-3", "4e-3", "8e-3"), "8e-3"),
        ("5e-4", ("2.5e-4", "5e-4", "1e-3"), "5e-4"),
    ],
)
def test_a_grid_grows_while_its_best_rate_is_an_end(best: str, tried: tuple[str, ...], chosen: str) -> None:
    rates = ("2.5e-4", "5e-4", "1e-3", "2e-3", "4e-3", "8e-3")
    growing = replace(TOY, rates=rates, first_rates=("5e-4", "1e-3") if best == "5e-4" else ("1e-3", "2e-3"))
    found = results.Runs([])
    for _ in rates:
        for each in growing.dev_runs(found):
            if each.arm == arms.REALM:
                em = 1 - abs(rates.index(each.rate) - rates.index(best)) / 10
                found.lines["dev", "realm", each.rate, 3] = line("realm", seed=3, em=em, split="dev", rate=each.rate)
    assert growing.rates_of(found, arms.REALM) == tried
    assert growing.best_rate(found, arms.REALM) == chosen
    assert [each.rate for each in growing.test_runs(found) if each.arm == arms.REALM] == [chosen]
    assert growing.rates_of(found, arms.ORQA) == growing.first_rates  # it has no runs
