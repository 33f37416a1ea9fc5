"""The questions that a page shows, each with its evidence: blocks in pieces of text, marked or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from realmctl.artifacts import Artifact
from realmctl.extras.report.outcomes import OutcomeLabel, QuestionOutcome, RetrievalDepths
from realmctl.questions.answer_search import AnswerSearch
from realmctl.retrieval.answering.score_files import Context, Evidence, entries, evidence

BLOCKS_SHOWN = 5


@dataclass(frozen=True)
class TextPiece:
    """A piece of a block's text: part of an answer, of the predicted span, of both or of neither."""

    text: str
    answer: bool
    predicted: bool


@dataclass(frozen=True)
class EvidenceBlock:
    """A retrieved block. `chosen`: the predicted span was taken from it."""

    rank: int
    title: str
    score: float
    has_answer: bool
    chosen: bool
    pieces: list[TextPiece]


@dataclass(frozen=True)
class QuestionEvidence:
    """A question on the page. `number` is its position in the question set, from 1."""

    number: int
    outcome: QuestionOutcome
    failure: OutcomeLabel
    blocks: list[EvidenceBlock]


def sample_evenly(failures: Sequence[OutcomeLabel], most: int) -> list[int]:
    """Return the numbers of at most `most` questions, ascending.

    Each outcome gets an equal share where possible, spread over the question set.
    """
    places: dict[OutcomeLabel, list[int]] = {}
    for number, failure in enumerate(failures):
        places.setdefault(failure, []).append(number)
    left, chosen = most, []
    for rest, numbers in enumerate(sorted(places.values(), key=len)):
        take = min(len(numbers), left // (len(places) - rest))
        chosen += [numbers[k * len(numbers) // take] for k in range(take)]
        left -= take
    return sorted(chosen)


def question_evidence(
    scores: Artifact, outcomes: Sequence[QuestionOutcome], depths: RetrievalDepths, most: int
) -> list[QuestionEvidence]:
    """Return at most `most` questions with their evidence."""
    failures = [depths.label(outcome) for outcome in outcomes]
    wanted = set(sample_evenly(failures, most))
    seen = evidence(scores)
    found = []
    for number, entry in enumerate(entries(scores)):
        if number in wanted:
            span = seen[number] if number < len(seen) else None
            blocks = list(_blocks(entry["ctxs"], outcomes[number], span))
            found.append(QuestionEvidence(number + 1, outcomes[number], failures[number], blocks))
    return found


def _blocks(contexts: Sequence[Context], outcome: QuestionOutcome, span: Evidence | None) -> Iterator[EvidenceBlock]:
    """Yield the best five blocks, the best one that holds an answer, and the one with the predicted span."""
    search = AnswerSearch(outcome.question, "tokens")
    ranks = {*range(1, BLOCKS_SHOWN + 1), outcome.rank, outcome.chosen}
    for rank, context in enumerate(contexts, 1):
        if rank in ranks:
            chosen, text = rank == outcome.chosen, context["text"]
            predicted = [(span["start"], span["end"])] if span and chosen else []
            answers = search.spans(text) if context["has_answer"] else []
            yield EvidenceBlock(
                rank,
                context["title"],
                context["score"],
                context["has_answer"],
                chosen,
                pieces(text, answers, predicted),
            )


def pieces(text: str, answers: Sequence[tuple[int, int]], predicted: Sequence[tuple[int, int]]) -> list[TextPiece]:
    """Cut `text` where an answer or a predicted span begins or ends. The pieces joined are the text."""
    cuts = sorted({0, len(text), *(at for span in (*answers, *predicted) for at in span if 0 < at < len(text))})
    return [
        TextPiece(text[start:end], _covered(start, end, answers), _covered(start, end, predicted))
        for start, end in pairwise(cuts)
    ]


def _covered(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(first <= start and end <= last for first, last in spans)
