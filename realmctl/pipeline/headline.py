"""The headline of a result: its most important numbers on one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from realmctl.amounts import number_text


def headline_text(names: Sequence[str], metrics: Mapping[str, object]) -> str:
    """Format metrics on one line, such as `loss 0.4312, recall@5 0.61, alarms none`.

    Args:
        names: Names of metrics, the most important first. A name may end in `*`. Metrics that are missing are left out.
        metrics: The metrics of an artifact.
    """
    return ", ".join(f"{name} {_amount(metrics[name])}" for name in _matching(names, metrics))


def _matching(names: Sequence[str], metrics: Mapping[str, object]) -> Iterable[str]:
    found = (key for name in names for key in metrics if fnmatchcase(key, name) and metrics[key] is not None)
    return dict.fromkeys(found)


def _amount(value: object) -> str:
    if isinstance(value, Mapping):
        counted = [f"{name} {_amount(number)}" for name, number in value.items() if number]
        return " ".join(counted) or "none"
    return number_text(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
