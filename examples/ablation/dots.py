"""One row of dots for each arm: a small dot for each seed, a large one for the mean, a line for its interval."""

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from matplotlib.figure import Figure
from spread import difference

sys.path.append(str(Path(__file__).resolve().parents[1]))

from figure import Row, draw


def dots(found: Mapping[str, Sequence[float]], label: str, marked: Collection[str] = ()) -> Figure:
    """Draw {arm: one number for each seed}, with the 95 % interval of the mean (Student's t). `label`: of the axis. `marked` arms have a colour of their own."""
    rows = []
    for arm, values in found.items():
        mean = difference(dict(enumerate(values)), dict.fromkeys(range(len(values)), 0.0))
        low, high = (mean.low, mean.high) if mean else (None, None)
        rows.append(Row(arm, fmean(values), low, high, values, color=int(arm in marked)))
    return draw({"": rows}, label)
