"""The plots of the page as SVG files. Equal numbers give equal bytes. Seeds are thin lines; their mean is bold."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from arms import NEVER, REALM, SPAN, STALE, UNIFORM, Arm
from curves import Curves, logged, mean_over_runs, smoothed
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from results import Run, by_seed
from spread import BySeed, spread

STYLE = {
    "svg.hashsalt": "ablation",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
WINDOWS = 15
"""A curve is smoothed over a window of its number of steps divided by this number."""
FEW = 50
"""A curve with fewer points than this has a mark at each point."""

MASKING = (REALM, SPAN, UNIFORM, NEVER)
REFRESHING = (REALM, *STALE)


def draw_all(runs: Sequence[Run], folder: Path) -> list[tuple[str, str]]:
    """Write the plots whose numbers exist, and remove the others. Return (file name, caption) of each one written."""
    drawn = [
        ("utility.svg", "Retrieval utility of the top candidate in training", utility(runs)),
        ("recall.svg", "Recall@5 of dev questions while training", recall(runs)),
        ("refresh.svg", "EM and recall@5 against the refresh period; bars are ± 1 standard deviation", refresh(runs)),
        ("age.svg", "Steps since the snapshot that the index in use was made from", age(runs)),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for name, _, figure in drawn:
        if figure is None:
            (folder / name).unlink(missing_ok=True)
        else:
            with matplotlib.rc_context(STYLE):
                figure.savefig(folder / name, metadata={"Date": None})
    return [(name, caption) for name, caption, figure in drawn if figure is not None]


def utility(runs: Sequence[Run]) -> Figure | None:
    """Draw the utility of each arm on the wordpieces that it hides."""
    curves = {arm: logged(runs, arm.key, "top_1_utility") for arm in MASKING}
    smooth = {arm: smoothed(values_RS, values_RS.shape[1] // WINDOWS + 1) for arm, values_RS in curves.items()}
    return _over_steps(smooth, "retrieval utility, top 1")


def recall(runs: Sequence[Run]) -> Figure | None:
    """Draw the recall during training, for runs that measured it."""
    return _over_steps({arm: logged(runs, arm.key, "recall@5") for arm in REFRESHING}, "recall@5, dev")


def age(runs: Sequence[Run]) -> Figure | None:
    """Draw the age of the index, a sawtooth for each refresh period."""
    return _over_steps({arm: logged(runs, arm.key, "index_age_steps") for arm in REFRESHING}, "index age, steps")


def refresh(runs: Sequence[Run]) -> Figure | None:
    """Draw two panels over the refresh periods."""
    panels = {
        "EM": {arm: by_seed(runs, arm.scores, "em") for arm in REFRESHING},
        "recall@5 before fine-tuning": {arm: by_seed(runs, arm.before, "recall@5") for arm in REFRESHING},
    }
    if not any(column for columns in panels.values() for column in columns.values()):
        return None
    ticks = [_period(runs, arm) for arm in REFRESHING]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 3.0), layout="constrained")
        for axes, (title, columns) in zip(figure.subplots(1, 2), panels.items(), strict=True):
            _over_periods(axes, list(columns.values()))
            axes.set(xticks=range(len(ticks)), xticklabels=ticks, xlabel="steps between refreshes", ylabel=title)
    return figure


def _period(runs: Sequence[Run], arm: Arm) -> str:
    """Return the refresh period from the manifests of the runs."""
    settings = [run.made[arm.key].settings for run in runs if arm.key in run.made]
    periods = {"never" if each["refresh"] == "never" else str(each["refresh_every"]) for each in settings}
    return " or ".join(sorted(periods)) or f"({arm.label})"


def _over_periods(axes: Axes, columns: Sequence[BySeed]) -> None:
    for seed in sorted({seed for column in columns for seed in column}):
        axes.plot([column.get(seed, np.nan) for column in columns], color=COLORS[0], linewidth=0.7, alpha=0.4)
    over = [(place, found) for place, column in enumerate(columns) if (found := spread(column))]
    axes.errorbar(
        [place for place, _ in over], [found.mean for _, found in over], [found.sd or 0.0 for _, found in over],
        color=COLORS[0], linewidth=2, marker="o", capsize=4,
    )  # fmt: skip


def _over_steps(curves: dict[Arm, Curves], title: str) -> Figure | None:
    if not any(values_RS.size for values_RS in curves.values()):
        return None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 3.2), layout="constrained")
        axes = figure.subplots()
        for color, (arm, values_RS) in zip(COLORS, curves.items(), strict=True):
            if values_RS.size:
                _draw(axes, values_RS, color, arm.label)
        axes.set(xlabel="step", ylabel=title)
        figure.legend(loc="outside upper center", ncols=len(COLORS))
    return figure


def _draw(axes: Axes, values_RS: Curves, color: str, label: str) -> None:
    for values_S in values_RS:
        _line(axes, values_S, color=color, linewidth=0.7, alpha=0.4)
    _line(axes, mean_over_runs(values_RS), color=color, linewidth=2, label=label)


def _line(axes: Axes, values_S: Curves, **look: object) -> None:
    """Draw a line through the steps with a number, and mark the steps if there are few."""
    (there,) = np.nonzero(np.isfinite(values_S))
    axes.plot(there + 1, values_S[there], marker="." if len(there) < FEW else "", **look)
