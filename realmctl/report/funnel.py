"""How many questions come how far: the loss funnel, from an answer in the corpus to exact match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from realmctl.report.outcomes import FAR, NEAR, Depths, Failure, QuestionOutcome


@dataclass(frozen=True)
class FunnelStep:
    """A step of the funnel: how many questions pass it by itself (None: not known), and how many fail here first."""

    label: str
    passed: int | None
    lost_as: Failure | None
    lost: int
    about: str


@dataclass(frozen=True)
class Funnel:
    """The steps of one question set, the names of its failures, and what is to be said beside them."""

    questions: int
    depths: Depths
    steps: list[FunnelStep]
    labels: dict[Failure, str]
    counts: dict[Failure, int]
    notes: list[str]


def depths_of(fates: Sequence[QuestionOutcome]) -> Depths:
    """What was retrieved (at most 100) and what was read; 5 where no evidence says."""
    far = min(FAR, max((fate.retrieved for fate in fates), default=0))
    read = max((fate.read or 0 for fate in fates), default=0)
    return Depths(far, min(far, read or NEAR))


def funnel_of(fates: Sequence[QuestionOutcome]) -> Funnel:
    """Count them."""
    depths = depths_of(fates)
    counts = Counter(map(depths.failure, fates))
    labels = {name: label for name, label in labels_of(depths).items() if counts[name]}
    return Funnel(len(fates), depths, _steps(fates, depths, counts), labels, dict(counts), _notes(fates, depths))


def labels_of(depths: Depths) -> dict[Failure, str]:
    """What each failure is called, in the order of the funnel."""
    return {
        "corpus": "not in corpus",
        "far": f"not in top {depths.far}",
        "near": f"not in top {depths.near}",
        "read": "read but wrong",
        "wrong": "wrong",
        "found": f"in top {depths.near}",
        "right": "right",
    }


def _steps(fates: Sequence[QuestionOutcome], depths: Depths, counts: Counter[Failure]) -> list[FunnelStep]:
    steps = [*_retrieval_steps(fates, depths, counts)] if depths.far else []
    if any(fate.chosen_has_answer is not None for fate in fates):
        chosen = sum(fate.chosen_has_answer is True for fate in fates)
        steps.append(
            FunnelStep("read from a block that holds an answer", chosen, None, 0, "the reader chose its span there")
        )
    if any(fate.right is not None for fate in fates):
        right = sum(fate.right is True for fate in fates)
        lost: Failure = "read" if depths.far else "wrong"
        steps.append(FunnelStep("exact match", right, lost, counts[lost], "the predicted text is right"))
    return steps


def _retrieval_steps(fates: Sequence[QuestionOutcome], depths: Depths, counts: Counter[Failure]) -> list[FunnelStep]:
    known = None if any(fate.in_corpus is None for fate in fates) else sum(fate.in_corpus is True for fate in fates)
    steps = [FunnelStep("answer in the corpus", known, "corpus", counts["corpus"], "some block holds it as words")]
    for depth in dict.fromkeys((depths.far, depths.near)):
        within = sum(fate.within(depth) for fate in fates)
        failure: Failure = "far" if depth == depths.far else "near"
        steps.append(FunnelStep(f"in the top {depth}", within, failure, counts[failure], "a block retrieved holds it"))
    return steps


def _notes(fates: Sequence[QuestionOutcome], depths: Depths) -> list[str]:
    """What a reader of the funnel would else take for an error, or for a number."""
    notes = []
    if not depths.far:
        notes.append("Nothing was retrieved for these questions: there is no evidence to show.")
    elif any(fate.in_corpus is None for fate in fates):
        notes.append(
            "Whether the answers are in the corpus was not looked up: the blocks are not at hand. Name them with --blocks."
        )
    if depths.far and any(fate.right is not None and fate.read is None for fate in fates):
        notes.append(
            "These scores do not say which block was read; eval-em writes that since its version 4. Make them again."
        )
    unseen = sum(bool(fate.right) and not fate.within(depths.near) for fate in fates)
    if depths.far and unseen:
        notes.append(
            f"{unseen} right {'answer is' if unseen == 1 else 'answers are'} counted as right though no block of the top "
            f"{depths.near} holds an answer as words: exact match forgives articles and punctuation, the test of blocks does not."
        )
    return notes
