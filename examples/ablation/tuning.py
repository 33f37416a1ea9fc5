"""The tables of the dev seeds: the grid of every arm, and staleness at every rate."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from arms import ARMS, REALM, STALE, Arm
from grid import Grid
from notation import grid_cell, number, signed, table
from results import Line, Runs

REFRESHING = (REALM, *STALE)
"""From the freshest index to the stalest."""
OVERLAPS = (0.0, 0.5, 0.65, 0.75, 1.01)
"""Bounds of the bands of costs."""


def grid_table(runs: Runs, grid: Grid) -> str:
    """Return exact match of every tuned arm at every rate: the mean over the dev seeds, and each seed. The chosen one is bold."""
    tuned = [arm for arm in ARMS if not arm.rate_of]
    used = {rate for arm in tuned for rate in grid.rates_of(runs, arm)}
    rates = [rate for rate in grid.rates if rate in used]
    return table(["variant", "the rate is that of", *rates], [_grid_row(runs, grid, arm, rates) for arm in tuned])


def _grid_row(runs: Runs, grid: Grid, arm: Arm, rates: Sequence[str]) -> list[str]:
    best = grid.best_rate(runs, arm)
    columns = {rate: list(grid.dev_em(runs, arm, rate).values()) for rate in rates}
    return [arm.label, arm.tunes, *(grid_cell(values, rate == best) for rate, values in columns.items())]


def staleness_table(runs: Runs, grid: Grid) -> str:
    """Return exact match against refresh period and rate, with the staleness that was measured."""
    header = [
        "rate",
        "steps between refreshes",
        "refreshes",
        "n",
        "EM",
        "recall@5",
        "drift at a swap",
        "overlap at a swap",
    ]
    return table(header, [row for rate in grid.rates for row in _staleness_rows(runs, grid, rate)])


def _staleness_rows(runs: Runs, grid: Grid, rate: str) -> Iterator[list[str]]:
    for arm in REFRESHING:
        if lines := [*_dev(runs, grid, arm, rate).values()]:
            means = [fmean(_at_swaps(line, name)) for name in ("index_drift", "index_overlap") for line in lines]
            half = len(lines)
            yield [
                rate,
                str(lines[0]["training"]["refresh_every"]),
                f"{fmean(_refreshes(line) for line in lines):g}",
                str(half),
                number(fmean(line["scores"]["em"] for line in lines)),
                number(fmean(line["scores"]["recall@5"] for line in lines)),
                number(fmean(means[:half])),
                number(fmean(means[half:])),
            ]


def _refreshes(line: Line) -> int:
    """Return the number of refreshes while training: the first and the last entry are the start and the published index."""
    return len(line["training"]["steps"]) - 2


def _at_swaps(line: Line, name: str) -> list[float]:
    """Return a metric at all swaps of a run, the one to the published index included."""
    return [value for value in line["training"]["swaps"][name] if value is not None]


def by_period(runs: Runs, grid: Grid, rate: str) -> list[tuple[str, float]]:
    """Return (refresh period, exact match) of every dev run of a rate."""
    return [
        (str(line["training"]["refresh_every"]), line["scores"]["em"])
        for arm in REFRESHING
        for line in _dev(runs, grid, arm, rate).values()
    ]


def costs_of_age(runs: Runs, grid: Grid, rate: str) -> list[tuple[float, float]]:
    """Return (mean overlap at a swap, recall@5 minus that of REALM with the same seed) of every dev run of a rate with an older index."""
    fresh = _dev(runs, grid, REALM, rate)
    return [
        (fmean(_at_swaps(line, "index_overlap")), line["scores"]["recall@5"] - fresh[seed]["scores"]["recall@5"])
        for arm in STALE
        for seed, line in _dev(runs, grid, arm, rate).items()
        if seed in fresh
    ]


def costs_table(runs: Runs, grid: Grid) -> str:
    """Return what older indexes cost, by how many of their candidates a new index finds too. The bounds were chosen in view of the runs."""
    costs = [point for rate in grid.rates for point in costs_of_age(runs, grid, rate)]
    rows = []
    for low, high in pairwise(OVERLAPS):
        found = [cost for overlap, cost in costs if low <= overlap < high]
        if found:
            bounds = (
                f"{number(low)} or more"
                if high > 1
                else f"{number(low)} to {number(high)}"
                if low
                else f"below {number(high)}"
            )
            rows.append([bounds, str(len(found)), signed(fmean(found)), signed(min(found))])
    return table(["overlap at a swap", "runs", "recall@5: mean", "the worst"], rows)


def _dev(runs: Runs, grid: Grid, arm: Arm, rate: str) -> dict[int, Line]:
    return {seed: line for seed, line in runs.of("dev", arm.key, rate).items() if seed in grid.seeds["dev"]}
