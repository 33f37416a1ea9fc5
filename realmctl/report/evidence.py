"""The questions that a page shows, each with its evidence: blocks in pieces of text, marked or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.report.outcomes import Depths, Failure, QuestionOutcome, entries, records
from realmctl.retrieval.answering.answer_search import AnswerSearch

BLOCKS_SHOWN = 5


@dataclass(frozen=True)
class TextPiece:
    """A stretch of a block: of an answer, of the predicted span, of both or of neither."""

    text: str
    answer: bool
    predicted: bool


@dataclass(frozen=True)
class EvidenceBlock:
    """A retrieved block. `chosen`: the prediction is cut from it."""

    rank: int
    title: str
    score: float
    has_answer: bool
    chosen: bool
    pieces: list[TextPiece]


@dataclass(frozen=True)
class QuestionEvidence:
    """A question of the page, by its number in the set (from 1)."""

    number: int
    fate: QuestionOutcome
    failure: Failure
    blocks: list[EvidenceBlock]


def chosen_evenly(failures: Sequence[Failure], most: int) -> list[int]:
    """Numbers of at most `most` questions, ascending: as many of each failure as can be, spread over the set."""
    places: dict[Failure, list[int]] = {}
    for number, failure in enumerate(failures):
        places.setdefault(failure, []).append(number)
    left, chosen = most, []
    for rest, numbers in enumerate(sorted(places.values(), key=len)):
        take = min(len(numbers), left // (len(places) - rest))
        chosen += [numbers[k * len(numbers) // take] for k in range(take)]
        left -= take
    return sorted(chosen)


def shown(scores: Artifact, fates: Sequence[QuestionOutcome], depths: Depths, most: int) -> list[QuestionEvidence]:
    """At most `most` questions with their evidence."""
    failures = [depths.failure(fate) for fate in fates]
    wanted = set(chosen_evenly(failures, most))
    seen = records(scores, "evidence.jsonl")
    found = []
    for number, entry in enumerate(entries(scores)):
        if number in wanted:
            span = seen[number] if number < len(seen) else {}
            blocks = list(_blocks(entry["ctxs"], fates[number], span))
            found.append(QuestionEvidence(number + 1, fates[number], failures[number], blocks))
    return found


def _blocks(
    contexts: Sequence[Mapping[str, Any]], fate: QuestionOutcome, span: Mapping[str, Any]
) -> Iterator[EvidenceBlock]:
    """The best five, the best that holds an answer, and the one that the prediction is of."""
    search = AnswerSearch(fate.question, "tokens")
    ranks = {*range(1, BLOCKS_SHOWN + 1), fate.rank, fate.chosen}
    for rank, context in enumerate(contexts, 1):
        if rank in ranks:
            chosen, text = rank == fate.chosen, context["text"]
            predicted = [(int(span["start"]), int(span["end"]))] if chosen else []
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
    """`text` cut where a mark begins or ends; the pieces end to end are the text."""
    cuts = sorted({0, len(text), *(at for span in (*answers, *predicted) for at in span if 0 < at < len(text))})
    return [
        TextPiece(text[start:end], _covered(start, end, answers), _covered(start, end, predicted))
        for start, end in pairwise(cuts)
    ]


def _covered(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(first <= start and end <= last for first, last in spans)
