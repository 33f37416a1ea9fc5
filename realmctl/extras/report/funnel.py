"""The funnel of a question set: how many questions pass each step, from an answer in the corpus to exact match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from realmctl.extras.report.outcomes import FAR, NEAR, OutcomeLabel, QuestionOutcome, RetrievalDepths


@dataclass(frozen=True)
class FunnelStep:
    """A step of the funnel.

    `passed`: questions that pass this step, even if they fail another; None when unknown. `lost`: questions that fail
    here first. `lost_as`: the outcome of these questions.
    """

    label: str
    passed: int | None
    lost_as: OutcomeLabel | None
    lost: int
    about: str


@dataclass(frozen=True)
class Funnel:
    """The funnel of one question set: steps, names and counts of the outcomes, and notes for the reader."""

    questions: int
    depths: RetrievalDepths
    steps: list[FunnelStep]
    labels: dict[OutcomeLabel, str]
    counts: dict[OutcomeLabel, int]
    notes: list[str]


def retrieval_depths(outcomes: Sequence[QuestionOutcome]) -> RetrievalDepths:
    """Return how many blocks were retrieved (at most 100) and read (5 where the evidence does not record it)."""
    far = min(FAR, max((outcome.retrieved for outcome in outcomes), default=0))
    read = max((outcome.read or 0 for outcome in outcomes), default=0)
    return RetrievalDepths(far, min(far, read or NEAR))


def funnel_of(outcomes: Sequence[QuestionOutcome]) -> Funnel:
    """Count the outcomes of a question set."""
    depths = retrieval_depths(outcomes)
    counts = Counter(map(depths.label, outcomes))
    labels = {name: label for name, label in labels_of(depths).items() if counts[name]}
    return Funnel(
        len(outcomes), depths, _steps(outcomes, depths, counts), labels, dict(counts), _notes(outcomes, depths)
    )


def labels_of(depths: RetrievalDepths) -> dict[OutcomeLabel, str]:
    """Return the name of each outcome, in the order of the funnel."""
    return {
        "corpus": "not in corpus",
        "far": f"not in top {depths.far}",
        "near": f"not in top {depths.near}",
        "read": "read but wrong",
        "wrong": "wrong",
        "found": f"in top {depths.near}",
        "right": "right",
    }


def _steps(
    outcomes: Sequence[QuestionOutcome], depths: RetrievalDepths, counts: Counter[OutcomeLabel]
) -> list[FunnelStep]:
    steps = [*_retrieval_steps(outcomes, depths, counts)] if depths.far else []
    if any(outcome.chosen_has_answer is not None for outcome in outcomes):
        chosen = sum(outcome.chosen_has_answer is True for outcome in outcomes)
        steps.append(
            FunnelStep("read from a block that holds an answer", chosen, None, 0, "the reader chose its span there")
        )
    if any(outcome.right is not None for outcome in outcomes):
        right = sum(outcome.right is True for outcome in outcomes)
        lost: OutcomeLabel = "read" if depths.far else "wrong"
        steps.append(FunnelStep("exact match", right, lost, counts[lost], "the predicted text is right"))
    return steps


def _retrieval_steps(
    outcomes: Sequence[QuestionOutcome], depths: RetrievalDepths, counts: Counter[OutcomeLabel]
) -> list[FunnelStep]:
    known = (
        None
        if any(outcome.in_corpus is None for outcome in outcomes)
        else sum(outcome.in_corpus is True for outcome in outcomes)
    )
    steps = [
        FunnelStep("answer in the corpus", known, "corpus", counts["corpus"], "a block contains it as whole words")
    ]
    for depth in dict.fromkeys((depths.far, depths.near)):
        within = sum(outcome.within(depth) for outcome in outcomes)
        failure: OutcomeLabel = "far" if depth == depths.far else "near"
        steps.append(
            FunnelStep(f"in the top {depth}", within, failure, counts[failure], "a retrieved block contains it")
        )
    return steps


def _notes(outcomes: Sequence[QuestionOutcome], depths: RetrievalDepths) -> list[str]:
    """Return notes that explain numbers of the funnel which could be misread."""
    notes = []
    if not depths.far:
        notes.append("Nothing was retrieved for these questions: there is no evidence to show.")
    elif any(outcome.in_corpus is None for outcome in outcomes):
        notes.append(
            "Whether the answers are in the corpus was not looked up: the blocks were not found. "
            "Name them with --blocks."
        )
    if depths.far and any(outcome.right is not None and outcome.read is None for outcome in outcomes):
        notes.append(
            "These scores do not record which block was read; eval-em records it since its version 4. Run it again."
        )
    unseen = sum(bool(outcome.right) and not outcome.within(depths.near) for outcome in outcomes)
    if depths.far and unseen:
        notes.append(
            f"{unseen} right {'answer is' if unseen == 1 else 'answers are'} counted as right though no block of the top "
            f"{depths.near} holds an answer as words: exact match forgives articles and punctuation, the test of blocks does not."
        )
    return notes
