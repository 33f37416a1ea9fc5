"""Alarms of pre-training: signs of collapse in the metrics, reported once for each episode. docs/refresh.md says what to do.

A rule watches the mean of the last values of one metric. Its alarm is raised when the mean crosses one threshold. The episode
is over when the mean crosses back over a second threshold, so a mean that wavers around the first one is one episode.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from realmctl.log import warn

WINDOW = 100
"""Number of steps over which the rules average that have a value at every step."""
REFRESHES = 3
"""Number of refreshes in a row that must change almost nothing."""
PERIODS = 4
"""Refresh periods without a fresher index. Training waits after three of them by default."""


@dataclass(frozen=True)
class AlarmRule:
    """A threshold for the mean of the last `window` values of one metric.

    Args:
        name: Name of the alarm.
        metric: Metric in the line of a step.
        raised_at: Threshold of the mean. The alarm is raised at it or beyond it, on the side away from `over_at`.
        over_at: Threshold at which a raised alarm is over.
        window: Number of values.
        steps: Steps whose values count.
        meaning: The warning, with the mean as {mean}.
    """

    name: str
    metric: str
    raised_at: float
    over_at: float
    window: int
    steps: range
    meaning: str

    def holds(self, mean: float, was_raised: bool) -> bool:
        """Return whether the alarm is on. It depends on whether it was on before."""
        sign = 1.0 if self.raised_at > self.over_at else -1.0
        return sign * mean > sign * self.over_at if was_raised else sign * mean >= sign * self.raised_at


def rules(steps: int, refresh_every: int | None, chance: float) -> list[AlarmRule]:
    """Return the rules of one run.

    Args:
        steps: Number of training steps.
        refresh_every: Steps between snapshots; None when the run never refreshes.
        chance: Share of the queries that get a given block by chance: blocks per query / blocks of the corpus.
    """
    always, before = range(steps + 1), range(1)
    hub = (1 + chance) / 2
    found = [
        AlarmRule("null_saturated", "null_share", 0.9, 0.8, WINDOW, always,
             "the null document has {mean:.0%} of p(z|x): retrieved blocks hardly count, and the retriever learns little"),
        AlarmRule("no_utility", "retrieval_utility", 0.05, 0.1, WINDOW, range(steps // 10, steps + 1),
             "retrieval utility is {mean:.4f} nats: the reader answers no better with the retrieved blocks than without"),
        AlarmRule("hub_block", "hub_share", hub, 0.9 * hub, WINDOW, always,
             "{mean:.0%} of the queries retrieve one and the same block"),
        AlarmRule("reader_at_chance", "gain_auc_above_chance", 0.0, 1e-9, 1, before,
             "the reader's gains single out the blocks that hold the answer no better than chance, so they cannot teach the "
             "retriever. Practise the reader first: realmctl mlm-init --spans SPANS --practice curriculum"),
        AlarmRule("nothing_told", "any_tells", 0.0, 1e-9, 1, before,
             "no candidate of the watched sentences holds what they hide: retrieval cannot help there"),
    ]  # fmt: skip
    if refresh_every is not None:
        late, early = PERIODS * refresh_every, range(steps * 19 // 20 + 1)  # the learning rate falls to 0 at the end
        found += [
            AlarmRule("frozen_candidates", "candidates_changed", 0.002, 0.01, REFRESHES, early,
                 "index refreshes change {mean:.1%} of the candidates: the retriever does not learn"),
            AlarmRule("stale_index", "index_age_steps", late, late - 1, 1, always,
                 "the index is {mean:.0f} steps old: it is not being refreshed"),
        ]  # fmt: skip
    return found


class Alarms:
    """The state of all alarms of one run."""

    def __init__(self, rules: Sequence[AlarmRule] = ()) -> None:
        self._rules = rules
        self._values: dict[str, deque[float]] = {rule.name: deque(maxlen=rule.window) for rule in rules}
        self._raised: set[str] = set()
        self.counts = {rule.name: 0 for rule in rules}
        """{alarm: episodes so far}."""

    def observe(self, line: Mapping[str, Any]) -> list[str]:
        """Return the alarms that the metrics of a step raise, and warn of each. A metric that is not in `line` has no value."""
        return [rule.name for rule in self._rules if self._raises(rule, line)]

    def _raises(self, rule: AlarmRule, line: Mapping[str, Any]) -> bool:
        values = self._values[rule.name]
        if rule.metric not in line or line["step"] not in rule.steps:
            return False
        values.append(float(line[rule.metric]))
        mean, was_raised = sum(values) / len(values), rule.name in self._raised
        if len(values) < rule.window or not rule.holds(mean, was_raised):
            self._raised.discard(rule.name)
            return False
        if not was_raised:
            self._raised.add(rule.name)
            self.counts[rule.name] += 1
            said = rule.meaning.format(mean=mean)
            warn(f"pretrain: step {line['step']}: {said}. Alarm {rule.name}; docs/refresh.md says what to do.")
        return not was_raised

    def state(self) -> dict[str, Any]:
        """Return the JSON state for a checkpoint."""
        values = {name: list(values) for name, values in self._values.items()}
        return {"values": values, "raised": sorted(self._raised), "counts": self.counts}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        for name, values in state["values"].items():
            self._values[name].extend(values)
        self._raised, self.counts = set(state["raised"]), dict(state["counts"])
