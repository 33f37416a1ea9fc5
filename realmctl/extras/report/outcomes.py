"""Find out at which step each question of a scores artifact fails: corpus, retrieval, reading, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.log import progress
from realmctl.questions.answer_search import answered_by
from realmctl.questions.answers import exact_match
from realmctl.questions.questions import Question
from realmctl.questions.scorers import Scorer
from realmctl.retrieval.answering.score_files import Entry, Evidence, Prediction, entries, evidence, predictions

OutcomeLabel = Literal["corpus", "far", "near", "read", "right", "wrong", "found"]
FAR, NEAR = 100, 5


@dataclass(frozen=True)
class QuestionOutcome:
    """The outcome of one question. None means that a value was not recorded.

    rank: rank of the best block that holds an answer, from 1. retrieved, read: numbers of blocks. in_corpus: whether a
    block of the corpus holds an answer. chosen: rank of the block that the prediction was taken from. right: exact match.
    """

    question: Question
    prediction: str | None
    retrieved: int
    rank: int | None
    in_corpus: bool | None
    read: int | None
    chosen: int | None
    chosen_has_answer: bool | None
    right: bool | None

    def within(self, depth: int) -> bool:
        """Return whether one of the best `depth` blocks holds an answer."""
        return self.rank is not None and self.rank <= depth


@dataclass(frozen=True)
class RetrievalDepths:
    """`far`: how many blocks were retrieved for a question, at most 100. `near`: how many of them were read, or 5."""

    far: int
    near: int

    def label(self, outcome: QuestionOutcome) -> OutcomeLabel:
        """Return the first step that a question fails, or `right` for an exact match even if an earlier step failed."""
        if outcome.right:
            return "right"
        if not self.far:
            return "wrong"
        if not outcome.within(self.far):
            return "corpus" if outcome.in_corpus is False else "far"
        if not outcome.within(self.near):
            return "near"
        return "found" if outcome.right is None else "read"


def read_outcomes(scores: Artifact, blocks: Artifact | None) -> list[QuestionOutcome]:
    """Return the outcome of every question, in the file's order.

    Answers that were not retrieved are looked up in `blocks`. With None `in_corpus` stays None for them.
    """
    scorer: Scorer | None = scores.metrics.get("scorer")
    beside = zip_longest(predictions(scores), evidence(scores))
    found = [_outcome(entry, *next(beside, (None, None)), scorer=scorer) for entry in entries(scores)]
    return _with_corpus_lookup(found, blocks) if blocks and any(outcome.retrieved for outcome in found) else found


def _outcome(
    entry: Entry, predicted: Prediction | None, seen: Evidence | None, *, scorer: Scorer | None
) -> QuestionOutcome:
    contexts = entry["ctxs"]
    question = _question_of(entry, scorer)
    if predicted and predicted["question"] != question.question:
        raise InputError(f"a prediction is of {predicted['question']!r} where {question.question!r} was retrieved for.")
    rank = next((rank for rank, context in enumerate(contexts, 1) if context["has_answer"]), None)
    chosen = seen.get("rank") if seen else None
    if chosen and chosen > len(contexts):
        raise InputError(
            f"the evidence of {question.question!r} is block {chosen}, and {len(contexts)} blocks were retrieved. "
            "Make the scores again."
        )
    right = exact_match(predicted["prediction"], question.answers, scorer) if predicted and scorer else None
    return QuestionOutcome(
        question,
        predicted["prediction"] if predicted else None,
        len(contexts),
        rank,
        True if rank else None,
        seen.get("read") if seen else None,
        chosen,
        contexts[chosen - 1]["has_answer"] if chosen else None,
        right,
    )


def _question_of(entry: Entry, scorer: str | None) -> Question:
    """Return the question of an entry in retrieved.json. Substring matches were recorded only for plain answers."""
    plain = any("has_answer_substring" in context for context in entry["ctxs"]) or scorer in ("orqa", "squad", "dpr")
    return Question("", entry["question"], tuple(entry["answers"]), is_regex=not plain)


def _texts(blocks: Corpus, count: Callable[[], None]) -> Iterator[str]:
    for block in blocks:
        yield block.text
        count()


def _with_corpus_lookup(found: Sequence[QuestionOutcome], blocks: Artifact) -> list[QuestionOutcome]:
    """Return the outcomes after a search of the corpus for answers that were not retrieved."""
    missing = [number for number, outcome in enumerate(found) if outcome.in_corpus is None]
    texts = Corpus(blocks)
    with progress(len(texts), "looking for answers in the corpus", "blocks") as bar:
        known = answered_by([found[number].question for number in missing], _texts(texts, bar.advance))
    in_corpus = {number: place in known for place, number in enumerate(missing)}
    return [replace(outcome, in_corpus=in_corpus.get(number, True)) for number, outcome in enumerate(found)]
