"""The plots of the page as SVG files. Equal numbers give equal bytes. Seeds are thin lines; their mean is bold."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import matplotlib
import numpy as np
from arms import ARMS, NEVER, REALM, SPAN, UNIFORM, Arm
from claims import Tests
from dots import dots
from figure import COLORS, STYLE, save
from grid import Grid
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from results import Line, Runs
from tuning import REFRESHING, by_period, costs_of_age

MASKING = (REALM, SPAN, UNIFORM, NEVER)
Curve = tuple[Sequence[float], Sequence[float]]
"""Steps and values."""


def draw_all(runs: Runs, grid: Grid, folder: Path) -> list[tuple[str, str]]:
    """Write the plots whose numbers exist, and remove the others. Return (file name, caption) of each one written."""
    drawn = [
        (
            "arms.svg",
            "Exact match of every variant on the test questions: a small dot for each test seed, the mean, and its 95 % interval over seeds",
            arms(runs, grid),
        ),
        (
            "staleness.svg",
            "Exact match against the refresh period, and what an old index costs against the share of its candidates that a new one finds too; dev seeds",
            staleness(runs, grid),
        ),
        (
            "recall.svg",
            "Recall@5 on dev questions during pre-training; test seeds, the mean is bold",
            recall(runs, grid),
        ),
        (
            "utility.svg",
            "Retrieval utility of the top candidate during pre-training, in nats, on what each variant hides",
            utility(runs, grid),
        ),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for name, _, figure in drawn:
        if figure is None:
            (folder / name).unlink(missing_ok=True)
        else:
            save(figure, folder / name)
    return [(name, caption) for name, caption, figure in drawn if figure is not None]


def arms(runs: Runs, grid: Grid) -> Figure | None:
    """Draw exact match of each arm: a point for each seed, and the mean with its interval (Student's t)."""
    tests = Tests(runs, grid)
    found = {arm: [em for _, em in sorted(tests.by_seed(arm, "em").items())] for arm in ARMS}
    found = {arm: values for arm, values in found.items() if values}
    if not found:
        return None
    return dots({arm.label: values for arm, values in found.items()}, "exact match", [REALM.label])


def staleness(runs: Runs, grid: Grid) -> Figure | None:
    """Draw the dev runs of the arms that differ in the refresh period, a color for each rate."""
    points = {rate: by_period(runs, grid, rate) for rate in grid.rates}
    if not any(points.values()):
        return None
    named = {period for found in points.values() for period, _ in found}
    periods = [*sorted(named - {"never"}, key=int), *(named & {"never"})]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 3.2), layout="constrained")
        scores, costs = figure.subplots(1, 2)
        for color, (rate, found) in zip(COLORS, points.items(), strict=False):
            means = {period: [em for each, em in found if each == period] for period in periods}
            there = [period for period in periods if means[period]]
            places = [periods.index(period) for period in there]
            if not there:
                continue
            scores.plot(places, [fmean(means[period]) for period in there], color=color, marker="o", label=rate)
            at_rate = costs_of_age(runs, grid, rate)
            costs.plot([overlap for overlap, _ in at_rate], [cost for _, cost in at_rate], "o", color=color)
        scores.set(xticks=range(len(periods)), xticklabels=periods, xlabel="steps between refreshes", ylabel="EM, dev")
        costs.axhline(0, color="black", linewidth=0.8)
        costs.set(
            xlabel="share of the old index's candidates that a new one finds too",
            ylabel="recall@5, minus that of\nthe freshest index",
        )
        figure.legend(loc="outside upper center", ncols=len(COLORS), title="rate")
    return figure


def recall(runs: Runs, grid: Grid) -> Figure | None:
    """Draw the recall during training, where the index changes."""
    return _over_steps(runs, grid, REFRESHING, _recall_of, "recall@5, dev questions")


def utility(runs: Runs, grid: Grid) -> Figure | None:
    """Draw the utility of each arm on the wordpieces that it hides."""
    return _over_steps(runs, grid, MASKING, _utility_of, "retrieval utility, top 1")


def _recall_of(line: Line) -> Curve:
    training = line["training"]
    return training["steps"], [np.nan if value is None else value for value in training["swaps"]["recall@5"]]


def _utility_of(line: Line) -> Curve:
    parts = line["training"]["utility"]
    last = line["training"]["steps"][-1]
    return [last * (place + 0.5) / len(parts) for place in range(len(parts))], parts


def _over_steps(
    runs: Runs, grid: Grid, arms: Sequence[Arm], curve: Callable[[Line], Curve], title: str
) -> Figure | None:
    tests = Tests(runs, grid)
    curves: Mapping[Arm, list[Curve]] = {
        arm: [curve(line) for line in runs.of("test", arm.key, tests.rates[arm.key] or "").values()] for arm in arms
    }
    if not any(curves.values()):
        return None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 3.2), layout="constrained")
        axes = figure.subplots()
        for color, (arm, found) in zip(COLORS, curves.items(), strict=False):
            if found:
                _draw(axes, found, color, arm.label)
        axes.set(xlabel="step", ylabel=title)
        figure.legend(loc="outside upper center", ncols=len(COLORS))
    return figure


def _draw(axes: Axes, curves: Sequence[Curve], color: str, label: str) -> None:
    """Draw a thin line for each seed, and the mean over the seeds that have the same steps as the first."""
    for steps, values in curves:
        axes.plot(steps, values, color=color, linewidth=0.7, alpha=0.4, marker=".")
    alike = [values for steps, values in curves if list(steps) == list(curves[0][0])]
    axes.plot(curves[0][0], np.mean(alike, axis=0), color=color, linewidth=2, label=label)
