"""The figures of the page as SVG files. Equal numbers give equal bytes. In the curves each seed is a line."""

import re
import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from results import Experiment

sys.path.append(str(Path(__file__).resolve().parents[1]))

from figure import STYLE, Row, draw, save

NUMBER = r"([+-]\d\.\d+)"
DIFFERENCE = re.compile(
    rf"^- (?:recall@(\d+) of REALM minus that of its start, )?(.+): {NUMBER} \[{NUMBER}, {NUMBER}\], above", re.M
)
"""A line of the page: recall@k and the questions, or the readers whose exact match is compared; the mean and its interval."""
CURVES = {
    "practice.svg": ("encoder", "loss", "Loss of copy pre-training, nats a wordpiece"),
    "utility.svg": (
        "model",
        "retrieval_utility",
        "Utility of retrieved candidates while REALM trains, nats a wordpiece",
    ),
}
WINDOWS = 12
"""A curve is averaged over a window of its length divided by this number."""


def draw_all(made: Experiment, folder: Path) -> list[tuple[str, str]]:
    """Write the plots whose numbers exist, and remove the others. Return (file name, caption) of each one written."""
    drawn = []
    folder.mkdir(parents=True, exist_ok=True)
    for name, (output, metric, caption) in CURVES.items():
        curves = {seed: run.curve(output, metric) for seed, run in zip(made.seeds, made.runs, strict=True)}
        curves = {seed: curve for seed, curve in curves.items() if len(curve)}
        (folder / name).unlink(missing_ok=True)
        if curves:
            _draw(curves, caption, folder / name)
            drawn.append((name, caption))
    return drawn


def differences(page: str) -> dict[str, list[Row]]:
    """Return the differences that a page lists below its tables, by what was measured."""
    groups: dict[str, list[Row]] = {}
    for depth, label, *numbers in DIFFERENCE.findall(page):
        group = f"recall@{depth}, REALM minus its start" if depth else "exact match"
        groups.setdefault(group, []).append(Row(label, *map(float, numbers)))
    return groups


def draw_outcome(page: str, path: Path) -> None:
    """Draw the differences of a page with their 95 % intervals over the questions. A page without any has no figure."""
    path.unlink(missing_ok=True)
    if found := differences(page):
        save(draw(found, "difference, with its 95 % interval over the questions", line=0), path)


def _draw(curves: dict[int, NDArray[np.float64]], caption: str, path: Path) -> None:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.0, 2.6), layout="constrained")
        axes = figure.subplots()
        for seed, curve in curves.items():
            width = len(curve) // WINDOWS + 1
            smooth = np.convolve(curve, np.ones(width) / width, mode="valid")
            axes.plot(np.arange(width, len(curve) + 1), smooth, label=f"seed {seed}")
        axes.set(xlabel="step", title=caption)
        axes.legend(frameon=False)
    save(figure, path)
