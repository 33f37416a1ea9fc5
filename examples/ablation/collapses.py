"""Which pre-training runs lost their retriever, and whether an alarm said so."""

from collections import Counter
from collections.abc import Iterator

from arms import ARMS, Arm
from notation import DASH, table
from results import Line, Runs

LOST = 0.5
"""A run has collapsed if the recall@5 of its published index is at most this share of its start's."""
HEADER = ("variant", "rate", "runs", "collapsed", "alarms of these", "alarms of the others")


def collapses_table(runs: Runs) -> str:
    """Return a row for each arm and rate of which a run collapsed or raised an alarm, over all dev and test seeds."""
    return table(HEADER, [row for arm in ARMS for row in _rows(runs, arm)])


def counted(runs: Runs) -> str:
    """Say how many runs collapsed, and how many of these an alarm named."""
    lines = [line for line in runs.lines.values() if line.get("training")]
    if not lines:
        return "No pre-training has run yet."
    lost, kept = ([bool(_raised([line])) for line in lines if collapsed(line) is which] for which in (True, False))
    return (
        f"{len(lost)} of {len(lines)} runs collapsed, and {sum(lost)} of these raised an alarm. "
        f"{sum(kept)} of the other {len(kept)} runs raised one too."
    )


def collapsed(line: Line) -> bool:
    """Return whether a pre-training ends with at most half of the recall@5 that it began with."""
    recall = [value for value in line["training"]["swaps"]["recall@5"] if value is not None]
    return len(recall) > 1 and recall[-1] <= LOST * recall[0]


def _rows(runs: Runs, arm: Arm) -> Iterator[list[str]]:
    lines = [line for key, line in runs.lines.items() if key[1] == arm.key and line.get("training")]
    for rate in sorted({line["rate"] for line in lines}, key=float):
        mine = [line for line in lines if line["rate"] == rate]
        lost, kept = ([line for line in mine if collapsed(line) is which] for which in (True, False))
        if lost or _raised(kept):
            yield [arm.label, rate, str(len(mine)), str(len(lost)), _raised(lost) or DASH, _raised(kept) or DASH]


def _raised(lines: list[Line]) -> str:
    """Return in how many of these runs each alarm was raised: `hub_block 1, recall_lost 2`."""
    found = Counter(name for line in lines for name, episodes in line["training"]["alarms"].items() if episodes)
    return ", ".join(f"{name} {count}" for name, count in sorted(found.items()))
