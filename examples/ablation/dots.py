"""One row of dots for each arm: a small dot for each seed, a large one for the mean, a line for its interval. Equal numbers give equal bytes."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import matplotlib
from matplotlib.figure import Figure
from spread import difference

STYLE = {
    "svg.hashsalt": "ablation",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")


def dots(found: Mapping[str, Sequence[float]], label: str, marked: Collection[str] = ()) -> Figure:
    """Draw {arm: one number for each seed}, with the 95 % interval of the mean (Student's t). `label`: of the axis. `marked` arms have a colour of their own."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.0, 0.24 * len(found) + 0.8), layout="constrained")
        axes = figure.subplots()
        for place, (arm, values) in enumerate(found.items()):
            color = COLORS[1] if arm in marked else COLORS[0]
            mean = difference(dict(enumerate(values)), dict.fromkeys(range(len(values)), 0.0))
            axes.plot(values, [place] * len(values), ".", color=color, alpha=0.35)
            if mean and mean.low is not None and mean.high is not None:
                axes.plot([mean.low, mean.high], [place, place], color=color)
            axes.plot([fmean(values)], [place], "o", color=color)
        axes.set(yticks=range(len(found)), yticklabels=list(found), xlabel=label)
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.3)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG, without a date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, metadata={"Date": None})
