"""Format numbers with their units."""

from __future__ import annotations

import math

from realmctl.amounts import number_text

SHARES = (
    "em",
    "recall@",
    "substring_recall@",
    "provenance_recall@",
    "null_share",
    "accuracy",
    "answer_in_",
    "span_exact_match",
)
UNITS = {"loss": "nats", "retrieval_utility": "nats", "top_1_utility": "nats", "index_age_steps": "steps"}


def amount(name: str, value: object) -> str:
    """Format the value of a metric or setting by its name: 24.3 %, 0.75 s, 2.307 nats, 200,000."""
    if type(value) is int and name != "seed":
        return number_text(value)
    if type(value) is not float or not math.isfinite(value):
        return "–" if value is None else str(value)
    if name.startswith(SHARES):
        return percent(value)
    if name.startswith("seconds"):
        return f"{number_text(value)} s"
    return f"{number_text(value)} {UNITS[name]}" if name in UNITS else number_text(value)


def percent(share: float) -> str:
    """Format a share in per cent."""
    return f"{100 * share:.1f} %"
