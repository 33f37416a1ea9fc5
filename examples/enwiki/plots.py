"""The curves of the page as SVG files. Equal numbers give equal bytes. Each seed is a line."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from results import Experiment

STYLE = {"svg.hashsalt": "enwiki", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9.0}
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
        figure.savefig(path, metadata={"Date": None})
