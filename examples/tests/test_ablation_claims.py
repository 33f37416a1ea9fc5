"""The rule behind "shown", pushed to every side by numbers made for it; and the rate that the dev seeds choose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from tests.fixtures.ablation import BEST, DEV, RATES, TEST, line, load, whole

claims = load("claims")
grid = load("grid").read_grid()
results = load("results")
spread = load("spread")


def measured(lines: list[dict[str, Any]]) -> Any:
    return claims.Tests(results.Runs(lines), grid)


def decided(differences: list[float]) -> str:
    """The verdict on REALM against ORQA with these differences on the test seeds."""
    other = [
        each
        for each in whole()
        if (each["split"], each["arm"]) != ("test", "realm") and (each["split"], each["arm"]) != ("test", "orqa")
    ]
    ours = [line("realm", seed=seed, em=0.5 + value) for seed, value in zip(TEST, differences, strict=False)]
    theirs = [line("orqa", seed=seed, em=0.5) for seed in TEST]
    (claim,) = [each for each in claims.claims(measured(other + ours + theirs)) if each.compared == "EM, REALM - ORQA"]
    return str(claim.verdict)


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([0.1, 0.12, 0.11, 0.09, 0.1], "shown"),
        ([0.3, 0.3, 0.25, 0.28, -0.001], "shown"),  # one seed may disagree
        ([0.3, 0.3, 0.3, -0.001, -0.001], "not shown"),  # two may not
        ([0.9, 0.01, 0.01, 0.01, 0.01], "not shown"),  # every seed agrees, and the interval holds 0
        ([-0.1, -0.12, -0.11, -0.09, -0.1], "the opposite is shown"),
        ([-0.3, -0.3, -0.25, -0.28, 0.001], "the opposite is shown"),
        ([-0.9, -0.01, -0.01, -0.01, -0.01], "not shown"),
        ([0.0] * 5, "not shown"),
        ([0.1, 0.12, 0.11, 0.09], "open: 4 of 5 seeds"),
        ([], "not measured"),
    ],
)
def test_one_rule_for_both_sides(differences: list[float], verdict: str) -> None:
    assert decided(differences) == verdict


@given(st.lists(st.floats(-1, 1), min_size=5, max_size=9))
def test_the_rule_is_symmetric_and_never_laxer_than_the_t_test(values: list[float]) -> None:
    found, mirrored = (
        spread.difference({k: sign * value for k, value in enumerate(values)}, dict.fromkeys(range(len(values)), 0.0))
        for sign in (1, -1)
    )
    opposite = {"shown": "the opposite is shown", "the opposite is shown": "shown", "not shown": "not shown"}
    assert opposite[claims.verdict(found)] == claims.verdict(mirrored)
    if claims.verdict(found) != "not shown" and found.high - found.low > 1e-6:
        assert ttest_rel(values, [0.0] * len(values)).pvalue < 0.05 + 1e-6


def test_every_claim_is_decided_by_a_whole_file() -> None:
    found = {claim.statement: claim for claim in claims.claims(measured(whole()))}
    assert found["Pre-training helps"].verdict == "shown" and found["Pre-training helps"].found.mean == pytest.approx(
        0.2
    )
    assert found["Excluding the trivial candidate helps where X = Z"].verdict == "not shown"
    assert found["Retrieval utility of the top candidate rises through pre-training"].found.mean == pytest.approx(1.0)
    assert {claim.verdict for claim in found.values()} == {"shown", "not shown"}
    behind = claims.claims(measured(whole(ahead=-0.2)))
    assert "the opposite is shown" in {claim.verdict for claim in behind}


def test_nothing_run_is_nothing_claimed() -> None:
    assert {claim.verdict for claim in claims.claims(measured([]))} == {"not measured"}


def test_the_best_mean_on_the_dev_seeds_chooses_the_rate() -> None:
    ems = {"2.5e-4": (0.9, 0.1), "5e-4": (0.5, 0.6), "1e-3": (0.56, 0.54)}
    lines = [
        line("orqa", seed=seed, em=em, split="dev", rate=rate)
        for rate, both in ems.items()
        for seed, em in zip(DEV, both, strict=True)
    ]
    runs, orqa, joint = results.Runs(lines), load("arms").ORQA, load("arms").ORQA_JOINT
    assert grid.best_rate(runs, orqa) == grid.best_rate(runs, joint) == "5e-4"  # .55 twice: the lower rate
    assert grid.best_rate(results.Runs(lines[:-1]), orqa) is None
    unseen = [line("orqa", seed=seed, em=1.0, rate="2e-3") for seed in TEST]  # the test seeds choose nothing
    assert grid.best_rate(results.Runs(lines + unseen), orqa) == "5e-4"


def test_an_arm_is_tested_when_its_grid_is_whole() -> None:
    lines = [each for each in whole() if each["split"] == "dev"]
    planned = list(grid.test_runs(results.Runs(lines)))
    assert len(planned) == len(load("arms").ARMS) * len(TEST) and {run.rate for run in planned} == {BEST}
    part = results.Runs([each for each in lines if (each["arm"], each["seed"]) != ("realm", DEV[0])])
    assert {run.arm.key for run in grid.test_runs(part)} == {
        arm.key for arm in load("arms").ARMS if "realm" not in (arm.key, arm.rate_of)
    }


def test_the_grid_gives_every_tuned_arm_the_same_runs() -> None:
    by_arm: dict[str, list[tuple[str, int]]] = {}
    for run in grid.dev_runs(results.Runs([])):
        by_arm.setdefault(run.arm.key, []).append((run.rate, run.seed))
    tuned = {arm.key for arm in load("arms").ARMS if not arm.rate_of}
    assert by_arm.keys() == tuned
    assert all(sorted(runs) == sorted((rate, seed) for rate in RATES for seed in DEV) for runs in by_arm.values())
    assert not set(grid.seeds["dev"]) & set(grid.seeds["test"])
