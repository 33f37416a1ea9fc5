"""Charts as SVG: stands in a page, in its colours, the same each time, and what was drawn is what was logged."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import matplotlib
import numpy as np
import pytest

from realmctl.extras.report.charts import CHARTS, PRETRAIN
from realmctl.extras.report.curves import Curve, TrainingRun
from realmctl.extras.report.plots import draw_chart

NAMES = [name for chart in PRETRAIN for name in chart.metrics]


def run(seed=0, names=NAMES, steps=60):
    step = np.arange(1.0, steps + 1)
    values = np.random.default_rng(seed).random((len(names), steps))
    curves = {name: Curve(step, row) for name, row in zip(names, values, strict=True)}
    if "index_age_steps" in curves:
        curves["index_age_steps"] = Curve(step, (step - 1) % 10)
    return TrainingRun(None, curves, [])


@pytest.mark.parametrize(
    "chart", [chart for charts in CHARTS.values() for chart in charts], ids=lambda chart: chart.title
)
@pytest.mark.parametrize("count", [1, 3, 8])
def test_every_chart_is_drawn_for_the_page(chart, count):
    svg = draw_chart(chart, [run(seed, [*chart.metrics]) for seed in range(count)], "one")
    root = ET.fromstring(svg)  # well-formed, and needs no name space: HTML knows svg
    text = " ".join(root.itertext())
    assert root.tag == "svg" and root.attrib["role"] == "img" and chart.title in root.attrib["aria-label"]
    assert "training step" in text and chart.axis in text
    assert not re.search(r"http|<style|<metadata|<script|#0000f|#0100f|font-family", svg)
    colors = set(re.findall(r"var\(--series-(\d)\)", svg))
    assert colors == {str(number + 1) for number in range(min(6, count if count > 1 else len(chart.metrics)))}


def test_identifiers_are_unique_on_the_page_and_each_is_used():
    svgs = [draw_chart(chart, [run()], f"chart-{number}") for number, chart in enumerate(PRETRAIN)]
    made = [name for svg in svgs for name in re.findall(r' id="([^"]+)"', svg)]
    used = {
        name for svg in svgs for name in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg) for name in name if name
    }
    assert len(made) == len(set(made)) and set(made) == used


def test_the_same_bytes_whatever_the_users_style():
    first = draw_chart(PRETRAIN[0], [run()], "a")
    with matplotlib.rc_context(
        {"lines.linewidth": 9, "font.size": 30, "svg.fonttype": "path", "axes.facecolor": "red"}
    ):
        assert draw_chart(PRETRAIN[0], [run()], "a") == first
        assert matplotlib.rcParams["font.size"] == 30
    assert draw_chart(PRETRAIN[0], [run(1)], "a") != first


def test_a_curve_that_nobody_logged_is_no_chart():
    recall = next(chart for chart in PRETRAIN if chart.recorded_at_times)
    assert draw_chart(recall, [run(names=["loss"])], "a") is None
    assert draw_chart(recall, [run(names=["loss"]), run(names=["recall@5"])], "a") is not None


def test_a_bar_for_every_refresh():
    age = PRETRAIN[-1]
    with_refreshes, without = (draw_chart(age, [run(steps=steps)], "a") for steps in (60, 9))
    bars = [len(re.findall(r'clip|<path d="M [^"]* z', svg)) for svg in (with_refreshes, without)]
    assert bars[0] - bars[1] == 5  # the index of step 0, then taken up at 10, 20, .. 50
