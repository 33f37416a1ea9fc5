"""Rows of dots with intervals, in groups, as SVG files. Equal numbers give equal bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

STYLE = {
    "svg.hashsalt": "realmctl",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#555555")


@dataclass(frozen=True)
class Row:
    """A large dot, the line of its interval, and small dots.

    label: Stands left of it. Rows of a group that share a label share a line.
    low, high: Ends of the interval; None: there is none.
    points: The small dots, such as one for each seed.
    color: Place in `COLORS`.
    """

    label: str
    mean: float
    low: float | None = None
    high: float | None = None
    points: Sequence[float] = ()
    color: int = 0


def draw(
    groups: Mapping[str, Sequence[Row]], label: str, *, line: float | None = None, log: bool = False,
    legend: Mapping[str, int] | None = None,
) -> Figure:  # fmt: skip
    """Draw the rows of each group, {title: rows}, below each other over one axis.

    label: Of the axis. line: Where a thin upright line stands. log: The axis has a logarithmic scale. legend: {words: place in `COLORS`}.
    """
    lines = {title: list(dict.fromkeys(row.label for row in rows)) for title, rows in groups.items()}
    heights = [
        max(1, len(labels) + bool(title)) for title, labels in lines.items()
    ]  # nothing measured yet: one empty line
    width = max(7.0, 4.0 + 0.07 * max((len(each) for labels in lines.values() for each in labels), default=0))
    with matplotlib.rc_context(STYLE):
        figure = Figure(
            figsize=(width, 0.22 * sum(heights) + 0.8 + 0.2 * -(-len(legend or ()) // 3)), layout="constrained"
        )
        panels = figure.subplots(len(groups), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
        for axes, (title, rows) in zip(panels, groups.items(), strict=True):
            for row in rows:
                place, color = lines[title].index(row.label), COLORS[row.color]
                axes.plot(row.points, [place] * len(row.points), ".", color=color, alpha=0.35)
                if row.low is not None and row.high is not None:
                    axes.plot([row.low, row.high], [place, place], color=color)
                axes.plot([row.mean], [place], "o", color=color, markersize=5)
            axes.set(
                yticks=range(len(lines[title])), yticklabels=lines[title], ylim=(max(1, len(lines[title])) - 0.5, -0.5)
            )
            axes.set_title(title, loc="left", fontsize=9.0, fontweight="bold")
            axes.grid(axis="x", alpha=0.3)
            if line is not None:
                axes.axvline(line, color="#999999", linewidth=0.8)
        if log:
            panels[-1].set_xscale("log")
            panels[-1].xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panels[-1].xaxis.set_major_formatter("{x:g}")
            panels[-1].xaxis.set_minor_locator(NullLocator())
        panels[-1].set_xlabel(label)
        if legend:
            handles = [
                Line2D([], [], linestyle="", marker="o", color=COLORS[place], label=words)
                for words, place in legend.items()
            ]
            figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG, without a date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, metadata={"Date": None})
