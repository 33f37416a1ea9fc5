"""The targets of enwiki.sh: what each asks for, what was measured, and whether it was reached."""

from collections.abc import Iterator
from dataclasses import dataclass

from paired import Paired, paired
from results import Experiment

RECALL = {1: 0.72, 5: 0.94, 20: 0.98}
TOLD, RETRIEVED = 1.0, 0.2
LOSS_OF_RECALL = -0.01
EXACT_MATCH = 0.35
READERS = {
    "plain-scores": "start, plain reader",
    "start-scores": "start, copy-trained reader",
    "orqa-scores": "ORQA of equal compute, copy-trained reader",
    "orqa-plain-scores": "ORQA of equal compute, plain reader",
    "realm-scores": "REALM",
    "realm-plain-scores": "REALM's retriever, plain reader",
}


@dataclass(frozen=True)
class Target:
    """A target. `reached` is None if it was not measured."""

    asked: str
    found: str
    reached: bool | None

    @property
    def verdict(self) -> str:
        """The verdict in the words of the page."""
        return {True: "reached", False: "**not reached**", None: "not measured"}[self.reached]


def targets(made: Experiment) -> Iterator[Target]:
    """Yield the targets in the order of the page."""
    yield _start(made)
    yield _worst(made, "start-utility", "told_utility", TOLD, "utility of a positive block after copy pre-training")
    yield _worst(made, "start-utility", "retrieval_utility", RETRIEVED, "utility of retrieved candidates before REALM")
    yield _recall(made)
    yield _top_1(made)
    yield _exact_match(made)
    yield _realm_exact_match(made)
    yield _over_orqa(made)


def recall(made: Experiment, hits: object, depth: int, part: str | None, file: str | None) -> float:
    """Return recall@depth of hits, bool [questions, blocks], over the questions of a part and a file."""
    return float(hits[made.where(part, file), :depth].any(1).mean())  # type: ignore[index]


def interval(found: Paired) -> str:
    """Format a paired difference."""
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}], above 0 on {found.above} of {found.seeds} seeds"


def _start(made: Experiment) -> Target:
    first = made.files[0]
    asked = f"recall@1, @5, @20 of the untrained start on the dev questions of `{first}`: at least " + ", ".join(
        f"{value:.2f}" for value in RECALL.values()
    )
    hits = made.start.hits("recall")
    if hits is None:
        return Target(asked, "", None)
    found = {depth: recall(made, hits, depth, "dev", first) for depth in RECALL}
    reached = all(found[depth] >= least for depth, least in RECALL.items())
    return Target(asked, ", ".join(f"{value:.3f}" for value in found.values()), reached)


def _worst(made: Experiment, output: str, metric: str, least: float, what: str) -> Target:
    found = made.numbers(output, metric)
    asked = f"{what}, nats a wordpiece: at least {least:+.1f}"
    if not found:
        return Target(asked, "", None)
    return Target(asked, ", ".join(f"{v:+.2f}" for v in found.values()), min(found.values()) >= least)


def _recall(made: Experiment) -> Target:
    asked = f"REALM minus start, recall@1, all questions: interval above 0, and no seed below {LOSS_OF_RECALL:+.2f}"
    start, realm = made.start.hits("recall"), made.hits("realm-recall")
    if start is None or not realm:
        return Target(asked, "", None)
    first = {seed: hits[:, :1].any(1) for seed, hits in realm.items()}
    second = {seed: start[:, :1].any(1) for seed in realm}
    found = paired(first, second)
    assert found is not None
    least = min(float(first[seed].mean() - second[seed].mean()) for seed in realm)
    return Target(asked, f"{interval(found)}; lowest {least:+.3f}", found.low > 0 and least >= LOSS_OF_RECALL)


def _top_1(made: Experiment) -> Target:
    asked = "REALM minus start, top-1 utility: above 0 on each seed"
    start, realm = (made.numbers(name, "top_1_utility") for name in ("start-utility", "realm-utility"))
    gains = [realm[seed] - start[seed] for seed in sorted(start.keys() & realm.keys())]
    if not gains:
        return Target(asked, "", None)
    return Target(asked, ", ".join(f"{gain:+.2f}" for gain in gains), min(gains) > 0)


def _exact_match(made: Experiment) -> Target:
    asked = f"EM of the best reader: at least {EXACT_MATCH:.2f}, and at least that of BM25 under the plain reader"
    means = {label: _mean(made, output) for output, label in READERS.items()}
    known = {label: value for label, value in means.items() if value is not None}
    bm25 = _mean(made, "bm25-scores")
    if not known or bm25 is None:
        return Target(asked, "", None)
    best = max(known, key=known.__getitem__)
    found = f"{best} {known[best]:.3f}, BM25 {bm25:.3f}"
    return Target(asked, found, known[best] >= max(EXACT_MATCH, bm25))


def _mean(made: Experiment, output: str) -> float | None:
    found = made.numbers(output, "em")
    return sum(found.values()) / len(found) if found else None


def _realm_exact_match(made: Experiment) -> Target:
    asked = "EM, REALM minus start, both with the copy-trained reader: interval above 0"
    found = paired(made.right("realm-scores"), made.right("start-scores"))
    return Target(asked, "", None) if found is None else Target(asked, interval(found), found.low > 0)


def _over_orqa(made: Experiment) -> Target:
    """The aim of the paper's table 1, written before any run of ORQA's arm. The plain reader was the better one in the runs before."""
    asked = "EM, REALM minus ORQA of equal compute, both with the plain reader: interval above 0"
    found = paired(made.right("realm-plain-scores"), made.right("orqa-plain-scores"))
    return Target(asked, "", None) if found is None else Target(asked, interval(found), found.low > 0)
