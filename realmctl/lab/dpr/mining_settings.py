"""Which passages of a ranking become hard negatives."""

from __future__ import annotations

from realmctl.pipeline import Settings, setting


class MiningSettings(Settings):
    """Which passages of a ranking become negatives."""

    negatives: int = setting("Most negatives of a question.", default=4, at_least=1)
    positives: int = setting(
        "Most positive passages of a question, the best of the ranking first.", default=4, at_least=1
    )
    relative_margin: float | None = setting(
        "A negative scores at least this share of the best positive passage's score less, such as 0.05.",
        default=None,
        at_least=0,
        at_most=1,
        advanced=True,
    )

    def far_enough(self, score: float | None, best: float | None) -> bool:
        """Return whether a passage of this score is a negative beside a positive one. None is the score of what was not found."""
        if self.relative_margin is None:
            return True
        if score is None or best is None:
            return False
        return score <= best - abs(best) * self.relative_margin
