"""The rules behind "shown" and "not shown here", each pushed to both sides by numbers made for it."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.ablation import load, write_output, write_scores, write_whole_run

claims = load("claims")
results = load("results")
SEEDS = 3


def decided(folder: Path) -> dict[str, Any]:
    """{beginning of the statement: claim}."""
    return {claim.statement: claim for claim in claims.claims(results.open_runs(folder, range(SEEDS)))}


def one(folder: Path, beginning: str) -> Any:
    (claim,) = [claim for statement, claim in decided(folder).items() if statement.startswith(beginning)]
    return claim


def compare(folder: Path, first: str, second: str, differences: list[float]) -> None:
    for seed, value in enumerate(differences):
        write_scores(folder, seed, first, 0.5 + value)
        write_scores(folder, seed, second, 0.5)


@pytest.mark.parametrize(
    ("beginning", "first", "second", "shown", "not_shown"),
    [
        ("REALM beats ORQA", "realm", "orqa", [0.01, 0.2, 0.2], [-0.01, 0.3, 0.3]),
        ("REALM beats ORQA", "realm", "orqa", [0.11, 0.11, 0.11], [0.09, 0.09, 0.09]),
        ("It does so when", "realm-joint", "orqa-joint", [0.01, 0.2, 0.2], [-0.01, 0.3, 0.3]),
        ("Salient spans beat random uniform", "realm", "random-uniform", [0.01, 0.01, 0.01], [0.3, 0.3, 0.0]),
        ("Salient spans beat random span", "realm", "random-span", [0.01, 0.01, 0.01], [0.3, 0.3, 0.0]),
        ("A refreshed index", "realm", "refresh-never", [0.01, 0.1, 0.1], [0.2, 0.2, -0.01]),
        ("The null document helps", "off-corpus", "no-null", [0.1, 0.11, 0.12], [0.01, 0.2, 0.01]),
        ("Excluding", "same-corpus", "same-corpus-own", [0.1, 0.11, 0.12], [-0.1, -0.11, -0.12]),
    ],
)  # fmt: skip
def test_comparisons_of_exact_match(
    beginning: str, first: str, second: str, shown: list[float], not_shown: list[float], tmp_path: Path
) -> None:
    compare(tmp_path / "shown", first, second, shown)
    compare(tmp_path / "not", first, second, not_shown)
    assert one(tmp_path / "shown", beginning).verdict == "shown"
    assert one(tmp_path / "not", beginning).verdict == "not shown here"


def test_an_effect_is_not_shown_by_one_seed(tmp_path: Path) -> None:
    compare(tmp_path, "off-corpus", "no-null", [0.3])
    found = one(tmp_path, "The null document helps")
    assert found.verdict == "not shown here"
    assert found.evidence == "+.300 [one seed], > 0 on 1 of 1"


@pytest.mark.parametrize(
    ("ems", "verdict"),
    [
        ([0.7, 0.6, 0.5, 0.4], "shown"),
        ([0.7, 0.6, 0.61, 0.4], "not shown here"),
        ([0.7, 0.6, 0.6, 0.4], "not shown here"),
    ],
)
def test_falling_with_the_refresh_period(ems: list[float], verdict: str, tmp_path: Path) -> None:
    for arm, em in zip(("realm", "refresh-10x", "refresh-30x", "refresh-never"), ems, strict=True):
        write_scores(tmp_path, 0, arm, em)
    write_scores(tmp_path, 1, "realm", 0.0)  # a seed without the other arms does not count
    found = one(tmp_path, "EM falls")
    assert found.verdict == verdict
    assert f"REALM {ems[0]:.3f}".replace("0.", ".") in found.evidence and found.evidence.endswith("n = 1")


@pytest.mark.parametrize(("after", "verdict"), [(0.3, "shown"), (0.1, "not shown here")])
def test_utility_and_null_share(after: float, verdict: str, tmp_path: Path) -> None:
    write_output(tmp_path, 0, "start-utility", {"top_1_utility": 0.2})
    write_output(tmp_path, 0, "realm-utility", {"top_1_utility": after})
    write_output(tmp_path, 0, "off-corpus-utility", {"null_share": 0.2})
    write_output(tmp_path, 0, "off-corpus-strangers", {"null_share": after})
    assert one(tmp_path, "Retrieval utility").verdict == verdict
    assert one(tmp_path, "The null document takes").verdict == verdict


def test_a_null_share_that_hardly_differs_shows_nothing(tmp_path: Path) -> None:
    write_output(tmp_path, 0, "off-corpus-utility", {"null_share": 0.2})
    write_output(tmp_path, 0, "off-corpus-strangers", {"null_share": 0.21})
    assert one(tmp_path, "The null document takes").verdict == "not shown here"


def test_nothing_run_is_nothing_claimed(tmp_path: Path) -> None:
    found = decided(tmp_path)
    assert len(found) == 10
    assert {(claim.verdict, claim.evidence) for claim in found.values()} == {("not measured", "-")}


def test_a_whole_run_decides_every_claim(tmp_path: Path) -> None:
    for seed in range(SEEDS):
        write_whole_run(tmp_path, seed)
    assert all(claim.holds is not None for claim in decided(tmp_path).values())
