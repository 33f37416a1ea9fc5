"""The claims, and the one rule that decides all of them, whether they favour REALM or not."""

from collections.abc import Iterator
from dataclasses import dataclass

from arms import (
    BM25,
    BY_KEY,
    JOINT,
    NEVER,
    ORQA,
    ORQA_JOINT,
    REALM,
    SAME,
    SAME_OWN,
    SHORT,
    SPAN,
    STALE,
    STRANGERS,
    UNIFORM,
    Arm,
)
from grid import Grid
from results import Runs
from spread import BySeed, Difference, difference

LEAST_SEEDS = 5
RULE = f"""\
A difference is **shown** if at least {LEAST_SEEDS} test seeds have both values, its paired 95 % interval excludes 0, and all seeds but
at most one have its sign."""


@dataclass(frozen=True)
class Claim:
    """A claim that a difference is above 0. `found` is None if no test seed has both values."""

    statement: str
    compared: str
    found: Difference | None

    @property
    def verdict(self) -> str:
        """The verdict in the words of the page."""
        return verdict(self.found)


def verdict(found: Difference | None) -> str:
    """Apply the rule: `shown`, `the opposite is shown`, `not shown`, or what is missing."""
    if found is None:
        return "not measured"
    if found.n < LEAST_SEEDS or found.low is None or found.high is None:
        return f"open: {found.n} of {LEAST_SEEDS} seeds"
    if found.low > 0 and found.positive >= found.n - 1:
        return "shown"
    if found.high < 0 and found.negative >= found.n - 1:
        return "the opposite is shown"
    return "not shown"


class Tests:
    """The runs on the test seeds, each arm with the rate that the dev seeds chose."""

    def __init__(self, runs: Runs, grid: Grid) -> None:
        self.runs, self.grid = runs, grid
        self.rates = {key: grid.best_rate(runs, arm) for key, arm in BY_KEY.items()}

    def by_seed(self, arm: Arm, metric: str, group: str = "scores", part: str | None = None) -> dict[int, float]:
        """Return {seed: value} of the test seeds that have the metric. `part` names the sentences of a utility."""
        rate = self.rates[arm.key]
        if rate is None:
            return {}
        found = self.runs.by_seed("test", arm.key, rate, metric, group, part)
        return {seed: value for seed, value in found.items() if seed in self.grid.seeds["test"]}

    def em(self, first: Arm, second: Arm) -> Difference | None:
        """Return exact match of the first arm minus that of the second, paired by seed."""
        return difference(self.by_seed(first, "em"), self.by_seed(second, "em"))


def claims(tests: Tests) -> list[Claim]:
    """Return the claims in the order of the page."""
    return [*_of_exact_match(tests), *_of_utility(tests)]


def _of_exact_match(tests: Tests) -> Iterator[Claim]:
    def better(statement: str, first: Arm, second: Arm) -> Claim:
        return Claim(statement, f"EM, {first.label} - {second.label}", tests.em(first, second))

    yield better("Pre-training helps", REALM, ORQA)
    yield better("Pre-training helps where fine-tuning trains the retriever too", JOINT, ORQA_JOINT)
    yield better("REALM beats BM25 with the same reader", REALM, BM25)
    yield better("REALM's reader helps beside REALM's retriever", REALM, BY_KEY["realm-retriever"])
    yield better("REALM's reader helps beside the retriever that REALM starts from", BY_KEY["realm-reader"], SHORT)
    yield better("Hiding salient spans beats hiding random wordpieces", REALM, UNIFORM)
    yield better("Hiding salient spans beats hiding random spans", REALM, SPAN)
    for stale in STALE:
        yield better(f"A fresh index beats the {stale.label}", REALM, stale)
    yield better("Pre-training with an index that is never refreshed is worse than none", SHORT, NEVER)
    yield better("Excluding the trivial candidate helps where X = Z", SAME, SAME_OWN)
    for with_null, without in STRANGERS:
        yield better(f"The null document helps, {with_null.label}", with_null, without)


def _of_utility(tests: Tests) -> Iterator[Claim]:
    def utility(arm: Arm, metric: str, part: str) -> BySeed:
        return tests.by_seed(arm, metric, "utility", part)

    after, start = (utility(arm, "top_1_utility", "in corpus") for arm in (REALM, SHORT))
    yield Claim(
        "Retrieval utility of the top candidate rises through pre-training",
        "nats on held-out sentences, after - before",
        difference(after, start),
    )
    for arm, _ in STRANGERS:
        strange, known = (utility(arm, "null_share", part) for part in ("off corpus", "in corpus"))
        yield Claim(
            f"The null document takes a larger share where no block can help, {arm.label}",
            "share of p(z\\|x), sentences about strangers - others",
            difference(strange, known),
        )
