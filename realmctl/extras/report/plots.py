"""Draw curves as inline SVG with matplotlib. The page's style sheet sets the colours. The same input gives the same bytes.

The SVG contains no text of the user: runs differ by colour, and the page names them.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from realmctl.extras.report.charts import Chart
from realmctl.extras.report.curves import Curve, TrainingRun

INCHES = (4.1, 2.5)
SERIES = tuple(f"#0000{number:02x}" for number in range(0xF1, 0xF7))
"""Placeholders for the style sheet's --series-1 to --series-6: colours that matplotlib does not use itself."""
INK, FAINT = "#0100f1", "#0100f2"
PAINT = {INK: "var(--ink-soft)", FAINT: "var(--line)"} | {
    color: f"var(--series-{number})" for number, color in enumerate(SERIES, 1)
}
DASHES = ("-", "--", ":")
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color", "grid.color"), FAINT),
    "svg.fonttype": "none",
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
FONT_FAMILY = re.compile(r"font-family: [^;]*; ?")
REFERENCE = re.compile(r"url\(#([^)]+)\)|^#(.+)")


def draw_chart(chart: Chart, runs: Sequence[TrainingRun], name: str) -> str | None:
    """Return the chart as an <svg> element, with one colour for each run; None where no run has such a curve.

    `name` must be unique on the page. Identifiers in the SVG begin with it.
    """
    if not any(metric in run.curves for run in runs for metric in chart.metrics):
        return None
    with _report_style(name):
        figure = Figure(figsize=INCHES, layout="constrained")
        axes = figure.add_subplot()
        for number, run in enumerate(runs):
            _draw(axes, chart, run, number if len(runs) > 1 else None)
        _format_axes(axes, chart)
        written = io.BytesIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(written.getvalue(), name, f"{chart.title} over training steps")


@contextmanager
def _report_style(name: str) -> Iterator[None]:
    """Use matplotlib's defaults and our style, and ignore the user's matplotlibrc."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**STYLE, "svg.hashsalt": name})
        yield


def _draw(axes: Axes, chart: Chart, run: TrainingRun, number: int | None) -> None:
    """Draw one run. With several runs each run has a colour; with one run each metric has."""
    named = axes.get_legend_handles_labels()[1]
    for place, (metric, label) in enumerate(chart.metrics.items()):
        if metric not in run.curves:
            continue
        color = SERIES[(place if number is None else number) % len(SERIES)]
        dash = DASHES[place % len(DASHES)]
        _draw_curve(axes, chart, run.curves[metric], color, dash, None if label in named else label)
    if chart.shows_refreshes:
        _draw_refreshes(axes, run, number or 0)


def _draw_curve(axes: Axes, chart: Chart, curve: Curve, color: str, dash: str, label: str | None) -> None:
    raw, smooth = curve.thinned(), None if chart.shows_refreshes or chart.recorded_at_times else curve.smoothed()
    marker = "o" if chart.recorded_at_times else ""
    faint = 0.3 if smooth else 1.0
    axes.plot(
        raw.step,
        raw.value,
        dash if not smooth else "-",
        color=color,
        linewidth=0.8 if smooth else 1.4,
        alpha=faint,
        marker=marker,
        markersize=3,
        label=None if smooth else label,
    )
    if smooth:
        axes.plot(smooth.step, smooth.value, dash, color=color, linewidth=1.8, label=label)


def _draw_refreshes(axes: Axes, run: TrainingRun, row: int) -> None:
    """Draw refreshes as a strip below the curve. A refresh of zero steps gets a minimal width."""
    hair = max(float(curve.step[-1]) for curve in run.curves.values()) / 250
    bars = [(begun, max(hair, taken - begun)) for begun, taken in run.refreshes]
    if bars:
        below = axes.get_xaxis_transform()
        axes.broken_barh(
            bars, (-0.09 - 0.08 * row, 0.06), transform=below, clip_on=False, color=SERIES[row % len(SERIES)]
        )
        axes.tick_params(axis="x", length=0, pad=17 + 11 * row)


def _format_axes(axes: Axes, chart: Chart) -> None:
    axes.set_xlabel("training step")
    axes.set_ylabel(chart.axis)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(axis="y", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
    if chart.share:
        axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=""))
    if chart.share or chart.shows_refreshes:
        axes.set_ylim(bottom=0)
    if len(chart.metrics) > 1:
        axes.legend(frameon=False, fontsize=8, ncols=len(chart.metrics), loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _inline(svg: bytes, name: str, title: str) -> str:
    """Return the <svg> element without the parts that only a file needs: name spaces, metadata, style sheet, size, unused ids."""
    root = ET.fromstring(svg)
    used = {
        one or other
        for node in root.iter()
        for value in node.attrib.values()
        for one, other in REFERENCE.findall(value)
    }
    for node in list(root.iter()):
        node.tag = node.tag.removeprefix(f"{{{SVG}}}")
        for child in [child for child in node if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style")]:
            node.remove(child)
        node.attrib = dict(_attributes(node, used, name))
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.attrib |= {"role": "img", "aria-label": title}
    text = ET.tostring(root, encoding="unicode")
    text = FONT_FAMILY.sub("", text)
    return re.sub("|".join(PAINT), lambda color: PAINT[color[0]], text)


def _attributes(node: ET.Element, used: set[str], name: str) -> Iterator[tuple[str, str]]:
    for key, value in node.attrib.items():
        if key == "id" and value in used:
            yield key, f"{name}-{value}"
        elif key == f"{{{XLINK}}}href":
            yield "href", f"#{name}-{value[1:]}"
        elif key != "id":
            yield key, value.replace("url(#", f"url(#{name}-")
