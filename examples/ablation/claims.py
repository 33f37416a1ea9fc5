"""The paper's claims. A rule decides each claim from the numbers; the page shows the rule and the verdict."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from arms import JOINT, MIXED, NEVER, NO_NULL, ORQA, ORQA_JOINT, REALM, SAME, SAME_OWN, SPAN, STALE, UNIFORM, Arm
from notation import interval, number, signed
from results import Run, by_seed
from spread import Difference, difference

Rule = Callable[[Difference], bool]


@dataclass(frozen=True)
class Claim:
    """A claim with its rule and evidence. `holds` is None if it was not measured."""

    statement: str
    rule: str
    holds: bool | None
    evidence: str

    @property
    def verdict(self) -> str:
        """The verdict in the words of the page."""
        return {True: "shown", False: "not shown here", None: "not measured"}[self.holds]


def every_seed(found: Difference) -> bool:
    """Return whether the difference is above 0 on every seed that has both values."""
    return found.positive == found.n


def interval_above_zero(found: Difference) -> bool:
    """Return whether the 95 % interval lies above 0. A single seed has no interval."""
    return found.low is not None and found.low > 0


def claims(runs: Sequence[Run]) -> list[Claim]:
    """Return the claims in the order of the page."""
    return [*_pretraining_claims(runs), _freshness(runs), *_utility_claims(runs), *_candidate_claims(runs)]


def _pretraining_claims(runs: Sequence[Run]) -> Iterator[Claim]:
    def compare(statement: str, rule: str, other: Arm, holds: Rule) -> Claim:
        return _compared(statement, rule, _em(runs, REALM, other), holds)

    yield compare(
        "REALM beats ORQA", "on every seed, and by .100 in the mean", ORQA,
        lambda found: every_seed(found) and found.mean >= 0.1,
    )  # fmt: skip
    yield _compared(
        "It does so when fine-tuning trains the retrievers too",
        "on every seed",
        _em(runs, JOINT, ORQA_JOINT),
        every_seed,
    )
    yield compare("Salient spans beat random uniform masks", "on every seed", UNIFORM, every_seed)
    yield compare("Salient spans beat random span masks", "on every seed", SPAN, every_seed)
    yield compare("A refreshed index beats one never refreshed", "on every seed", NEVER, every_seed)


def _freshness(runs: Sequence[Run]) -> Claim:
    arms = (REALM, *STALE)
    columns = [by_seed(runs, arm.scores, "em") for arm in arms]
    seeds = set.intersection(*map(set, columns))
    statement, rule = "EM falls as the refresh gets rarer", "mean EM falls at each step: fresh, 10x, 30x, never"
    if not seeds:
        return Claim(statement, rule, None, "-")
    means = [fmean(column[seed] for seed in seeds) for column in columns]
    evidence = ", ".join(f"{arm.label} {number(mean)}" for arm, mean in zip(arms, means, strict=True))
    return Claim(
        statement, rule, all(rarer < fresher for fresher, rarer in pairwise(means)), f"{evidence}; n = {len(seeds)}"
    )


def _utility_claims(runs: Sequence[Run]) -> Iterator[Claim]:
    start, realm = (by_seed(runs, f"{name}-utility", "top_1_utility") for name in ("start", "realm"))
    yield _compared(
        "Retrieval utility of the top candidate rises through pre-training",
        "held-out sentences, after minus before, on every seed", difference(realm, start), every_seed,
    )  # fmt: skip
    strange, known = (by_seed(runs, f"{MIXED.key}-{name}", "null_share") for name in ("strangers", "utility"))
    yield _compared(
        "The null document takes more where no block can help",
        "its share on off-corpus minus in-corpus held-out sentences, on every seed, and by .020 in the mean",
        difference(strange, known), lambda found: every_seed(found) and found.mean >= 0.02,
    )  # fmt: skip


def _candidate_claims(runs: Sequence[Run]) -> Iterator[Claim]:
    rule = "95 % interval above 0"
    yield _compared(
        "The null document helps where half of the sentences need it",
        rule,
        _em(runs, MIXED, NO_NULL),
        interval_above_zero,
    )
    yield _compared(
        "Excluding the sentence's own block helps, X = Z", rule, _em(runs, SAME, SAME_OWN), interval_above_zero
    )


def _em(runs: Sequence[Run], first: Arm, second: Arm) -> Difference | None:
    return difference(by_seed(runs, first.scores, "em"), by_seed(runs, second.scores, "em"))


def _compared(statement: str, rule: str, found: Difference | None, holds: Rule) -> Claim:
    if found is None:
        return Claim(statement, rule, None, "-")
    evidence = f"{signed(found.mean)} {interval(found)}, > 0 on {found.positive} of {found.n}"
    return Claim(statement, rule, holds(found), evidence)
