"""The watch of every training stage: loss and gradient against their first steps, and against what chance gives.

A loss that is finite may still say that nothing is learned any more. The watch derives four numbers of each step, whose means raise
alarms. docs/refresh.md explains them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from realmctl.training.monitoring.alarms import SHORTEST_WINDOW, WINDOW, AlarmRule, Alarms

SOUND = 1.5
"""A checkpoint is from before the loss left its range if the mean loss of the last steps is at most this multiple of the range."""
LEARNED = 0.01
"""Below this share of the range a loss is so small that a gradient near 0 is no sign of failure."""


def loss_rules(steps: int, chance: float) -> list[AlarmRule]:
    """Return the rules of a run of `steps` steps.

    The metrics are those of `LossWatch`. `chance` is as there.
    """
    window, always = min(WINDOW, max(SHORTEST_WINDOW, steps // 4)), range(steps + 1)
    found = [
        AlarmRule(
            "loss_exploded",
            "loss_in_ranges",
            3.0,
            2.0,
            min(SHORTEST_WINDOW, max(1, steps // 4)),
            always,
            "the loss is {mean:.3g} times the larger of its first value and that of chance: the training diverges",
            "Use a lower --lr or a longer --warmup.",
        ),
        AlarmRule(
            "dead_gradient",
            "gradient_to_first",
            1e-4,
            1e-3,
            window,
            always,
            "the gradient is {mean:.1e} times what it was at the start, and the loss is not small: the weights no longer learn",
            "Use a lower --lr or a longer --warmup, from the start or from a checkpoint before (--then-lr).",
        ),
        AlarmRule(
            "constant_loss",
            "loss_change",
            0.0,
            1e-12,
            window,
            always,
            "the loss does not change from step to step: there is nothing to learn from, or the weights stand still",
            "Check that something is hidden (--mask-rate), that the blocks hold the answers, and that --lr is not far too low.",
        ),
    ]
    if chance:
        found.append(
            AlarmRule(
                "loss_at_chance",
                "distance_to_chance",
                0.01,
                0.03,
                window,
                range(steps // 4, steps + 1),
                "the loss is that of guessing, to {mean:.1%}: the model tells nothing apart",
                "Was the loss lower before, or is grad_norm near 0? Then the model has collapsed: use a lower --lr or a longer --warmup. "
                "Otherwise train for longer.",
            )
        )
    return found


class LossWatch:
    """Alarms on the loss of a run.

    Args:
        steps: Steps of the run.
        chance: Loss of a model that tells nothing apart, in nats; 0 where it is not known.
        stop_on: Names of the alarms at which the run stops.
        what: Name of the stage for messages.
    """

    def __init__(self, steps: int, chance: float, stop_on: Sequence[str], what: str) -> None:
        self.alarms = Alarms(loss_rules(steps, chance), stop_on, what)
        self._chance = chance
        self._range: float | None = None
        self._first_gradient: float | None = None
        self._before: float | None = None
        self._last: deque[float] = deque(maxlen=SHORTEST_WINDOW)

    @property
    def in_range(self) -> bool:
        """Whether the mean loss of the last ten steps is near or below its range: the first loss or that of chance, the larger."""
        return not self._last or self._range is None or sum(self._last) / len(self._last) <= SOUND * self._range

    def observe(self, line: Mapping[str, Any]) -> list[str]:
        """Return the alarms that the metrics of a step raise, and warn of each."""
        loss, gradient = float(line["loss"]), float(line["grad_norm"])
        found: dict[str, float] = {"step": line["step"]}
        if self._before is not None:
            found["loss_change"] = abs(loss - self._before)
        self._before = loss
        if self._range is None and loss > 0:
            self._range = max(loss, self._chance)
        if self._first_gradient is None and gradient > 0:
            self._first_gradient = gradient
        if self._range is not None:
            self._last.append(loss)
            found["loss_in_ranges"] = loss / self._range
            if self._first_gradient is not None and loss > LEARNED * self._range:
                found["gradient_to_first"] = gradient / self._first_gradient
            if self._chance:
                found["distance_to_chance"] = abs(loss - self._chance) / self._chance
        return self.alarms.observe(found)

    def state(self) -> dict[str, Any]:
        """Return the JSON state for a checkpoint."""
        numbers = {"range": self._range, "first_gradient": self._first_gradient, "before": self._before}
        return {**numbers, "last": list(self._last), "alarms": self.alarms.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self._range, self._first_gradient, self._before = state["range"], state["first_gradient"], state["before"]
        self._last.extend(state["last"])
        self.alarms.restore(state["alarms"])
