"""Alarms of a training: signs of collapse in its metrics, reported once for each episode. docs/refresh.md explains them.

A rule watches the mean of the last values of one metric. Its alarm is raised when the mean crosses one threshold. The episode
is over when the mean crosses back over a second threshold, so a mean that wavers around the first one is one episode.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from realmctl.errors import QualityError
from realmctl.log import warn

LossAlarm = Literal["loss_exploded", "loss_at_chance", "dead_gradient", "constant_loss"]
"""The alarms of every training (loss_watch.py). `cloze_lost` is that of every training that measures cloze recall; the others are those
of pre-training."""
AlarmName = Literal[
    LossAlarm,
    "cloze_lost",
    "null_saturated",
    "no_utility",
    "hub_block",
    "frozen_candidates",
    "stale_index",
    "recall_lost",
    "reader_at_chance",
    "nothing_told",
]

WINDOW, SHORTEST_WINDOW = 100, 10
"""Number of steps over which the rules average that have a value at every step: a quarter of a short run, within these limits."""
MEASUREMENTS = 3
"""Number of measurements of recall in a row that must be low."""
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
        advice: What to change in the next run.
        relative: Whether the values are divided by the first value of the run. A run whose first value is 0 has no alarm.
    """

    name: str
    metric: str
    raised_at: float
    over_at: float
    window: int
    steps: range
    meaning: str
    advice: str = ""
    relative: bool = False

    def holds(self, mean: float, was_raised: bool) -> bool:
        """Return whether the alarm is on. It depends on whether it was on before."""
        sign = 1.0 if self.raised_at > self.over_at else -1.0
        return sign * mean > sign * self.over_at if was_raised else sign * mean >= sign * self.raised_at


def rules(steps: int, refresh_every: int | None, chance: float) -> list[AlarmRule]:
    """Return the rules of one pre-training.

    Args:
        steps: Number of training steps.
        refresh_every: Steps between snapshots; None when the run never refreshes.
        chance: Share of the queries that get a given block by chance: blocks per query / blocks of the corpus.
    """
    always, before = range(steps + 1), range(1)
    hub, window = (1 + chance) / 2, min(WINDOW, max(SHORTEST_WINDOW, steps // 4))
    found = [
        AlarmRule(
            "null_saturated",
            "null_share",
            0.9,
            0.8,
            window,
            always,
            "the null document has {mean:.0%} of p(z|x): retrieved blocks hardly count, and the retriever learns little",
            "Warm the retriever up for longer (`ict-init --steps`), or compare with --no-null-document.",
        ),
        AlarmRule(
            "no_utility",
            "retrieval_utility",
            0.05,
            0.1,
            window,
            range(steps // 10, steps + 1),
            "retrieval utility is {mean:.4f} nats: the reader answers no better with the retrieved blocks than without",
            "Start from an --encoder that has practised reading for longer (`mlm-init --spans`), or use a lower --lr.",
        ),
        AlarmRule(
            "hub_block",
            "hub_share",
            hub,
            0.9 * hub,
            window,
            always,
            "{mean:.0%} of the queries retrieve one and the same block",
            "Use a lower --lr or a longer --warmup, or drop the block from the corpus.",
        ),
        AlarmRule(
            "recall_lost",
            "recall@5",
            0.5,
            0.6,
            MEASUREMENTS,
            range(steps // 4, steps + 1),
            "recall@5 of the recall questions is {mean:.0%} of what it was at the start",
            "Use a lower --lr, or more --candidates, and refresh more often.",
            relative=True,
        ),
        AlarmRule(
            "reader_at_chance",
            "gain_auc_above_chance",
            0.0,
            1e-9,
            1,
            before,
            "the reader's gains single out the blocks that hold the answer no better than chance, so they cannot teach the "
            "retriever",
            "Practise the reader first: realmctl mlm-init --spans SPANS --practice curriculum.",
        ),
        AlarmRule(
            "nothing_told",
            "any_positive",
            0.0,
            1e-9,
            1,
            before,
            "no candidate of the watched sentences holds what they hide: retrieval cannot help there",
            "Use sentences whose spans other blocks hold too, a better retriever, or more --candidates.",
        ),
    ]
    if refresh_every is not None:
        late, early = PERIODS * refresh_every, range(steps * 19 // 20 + 1)  # the learning rate falls to 0 at the end
        found += [
            AlarmRule(
                "frozen_candidates",
                "candidates_changed",
                0.002,
                0.01,
                REFRESHES,
                early,
                "index refreshes change {mean:.1%} of the candidates: the retriever does not learn",
                "Is the loss above where it began? Then --lr is too high. Is it where it began? Then --lr is too low. If it falls, refreshes "
                "come too often: use a higher --refresh-every.",
            ),
            AlarmRule(
                "stale_index",
                "index_age_steps",
                late,
                late - 1,
                1,
                always,
                "the index is {mean:.0f} steps old: it is not being refreshed",
                "Start a refresher, or lower --max-index-age.",
            ),
        ]
    return found


class Alarms:
    """The state of all alarms of one run.

    Args:
        rules: The rules of the run.
        stop_on: Names of the alarms at which the run stops.
        what: Name of the stage for messages.
    """

    def __init__(self, rules: Sequence[AlarmRule] = (), stop_on: Sequence[str] = (), what: str = "pretrain") -> None:
        self._rules, self._stop_on, self._what = rules, stop_on, what
        self._first: dict[str, float] = {}
        self._values: dict[str, deque[float]] = {rule.name: deque(maxlen=rule.window) for rule in rules}
        self._raised: set[str] = set()
        self.counts = {rule.name: 0 for rule in rules}
        """{alarm: episodes so far}."""

    def observe(self, line: Mapping[str, object]) -> list[str]:
        """Return the alarms that the metrics of a step raise, and warn of each. A metric that is not in `line` has no value."""
        return [rule.name for rule in self._rules if self._raises(rule, line)]

    def stop_if_raised(self, step: int) -> None:
        """Raise QualityError if an alarm is on at which the run stops, after `step` steps."""
        for rule in self._rules:
            if rule.name in self._raised and rule.name in self._stop_on:
                values = self._values[rule.name]
                said = rule.meaning.format(mean=sum(values) / len(values))
                raise QualityError(
                    f"{self._what} stopped after step {step}, as --stop-on {rule.name} asks: {said}. {rule.advice} "
                    "A checkpoint was saved; the same command without --stop-on continues from it."
                )

    def _raises(self, rule: AlarmRule, line: Mapping[str, Any]) -> bool:
        values = self._values[rule.name]
        if rule.metric not in line:
            return False
        value = float(line[rule.metric])
        if rule.relative:
            first = self._first.setdefault(rule.name, value)
            value = value / first if first else 1.0
        if line["step"] not in rule.steps:
            return False
        values.append(value)
        mean, was_raised = sum(values) / len(values), rule.name in self._raised
        if len(values) < rule.window or not rule.holds(mean, was_raised):
            self._raised.discard(rule.name)
            return False
        if not was_raised:
            self._raised.add(rule.name)
            self.counts[rule.name] += 1
            said = rule.meaning.format(mean=mean)
            warn(f"{self._what}: step {line['step']}: {said}. {rule.advice} (alarm {rule.name})")
        return not was_raised

    def state(self) -> dict[str, Any]:
        """Return the JSON state for a checkpoint."""
        values = {name: list(values) for name, values in self._values.items()}
        return {"values": values, "raised": sorted(self._raised), "counts": self.counts, "first": self._first}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        for name, values in state["values"].items():
            self._values[name].extend(values)
        self._raised, self.counts = set(state["raised"]), {**self.counts, **state["counts"]}
        self._first = dict(state["first"])
