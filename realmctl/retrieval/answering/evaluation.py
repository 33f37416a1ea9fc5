"""Evaluation on a file of questions: exact match under every scorer, recall of the retrieval, and files to score elsewhere.

predictions.jsonl is the input of ORQA's evaluator. retrieved.json is DPR's retrieval result, one question a line.
evidence.jsonl has the answers, and the block and span of each prediction. disagreements.jsonl has the questions that one
scorer accepts and another rejects. A model without retrieval has no recall and no blocks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TextIO

from realmctl.artifacts import Writer
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import TokenIds
from realmctl.log import progress
from realmctl.questions.answer_search import AnswerSearch
from realmctl.questions.answers import Scorer
from realmctl.questions.questions import Question
from realmctl.questions.regexes import AnswerVerdict
from realmctl.questions.scoring import ScoredPrediction, fitting_scorers, judged
from realmctl.retrieval.answering.answerer import Answer, Answerer
from realmctl.retrieval.search.searcher import Hit, Searcher

DEPTHS = (1, 5, 20, 100)
DISAGREEMENTS = "disagreements.jsonl"


@dataclass(frozen=True)
class Outcome:
    """A question, its blocks as DPR's `ctxs`, the predicted text (None without an answerer), and its evidence."""

    question: Question
    contexts: list[dict[str, Any]]
    prediction: str | None
    evidence: dict[str, Any]


@dataclass(frozen=True)
class EvaluatedSystem:
    """The system under evaluation: an answerer with or without a searcher, or a searcher alone."""

    answerer: Answerer | None
    searcher: Searcher | None

    def tokens(self, questions: Sequence[Question]) -> list[TokenIds]:
        """Wordpieces of the questions."""
        reads = self.answerer or self.searcher
        return reads.tokens([question.question for question in questions]) if reads else []


def evaluate(
    evaluated: EvaluatedSystem, questions: Sequence[Question], out: Writer, *, scorer: str, hits: int, batch_size: int
) -> dict[str, Any]:
    """Answer every question, or only retrieve with a searcher alone, and write scores.json, predictions and evidence.

    recall@k: share of the questions with a hit that holds an answer as words (DPR's test). substring_recall@k: as raw text
    (ORQA's test). provenance_recall@k: share with a hit of a document that the question names, where questions do (KILT, BEIR).
    Questions without answers have only the last one.
    Raises ConfigError when the scorer does not suit the answers.
    """
    scorers = fitting_scorers(questions, scorer) if evaluated.answerer else []
    counts: Counter[str] = Counter({"disagreements": 0} if scorers else {})
    with ExitStack() as files, progress(len(questions), "answering", "questions") as bar:
        retrieved = _file(files, out, "retrieved.json", bool(evaluated.searcher))
        predictions = _file(files, out, "predictions.jsonl", bool(scorers))
        evidence = _file(files, out, "evidence.jsonl", bool(scorers))
        disagreements = _file(files, out, DISAGREEMENTS, bool(scorers))
        for number, outcome in enumerate(_outcomes(evaluated, questions, hits, batch_size)):
            if retrieved:
                retrieved.write(("[\n" if number == 0 else ",\n") + _retrieved(outcome))
                _count_recall(outcome, hits, counts)
            if predictions and evidence and disagreements:
                predictions.write(_predicted(outcome) + "\n")
                evidence.write(json.dumps(outcome.evidence, ensure_ascii=False) + "\n")
                result = judged(outcome.question, outcome.prediction or "", scorers)
                _count_matches(result, counts)
                if result.disagrees:
                    disagreements.write(json.dumps(result.record(), ensure_ascii=False) + "\n")
            bar.advance()
        if retrieved:
            retrieved.write("\n]\n" if questions else "[]\n")
    scores = _scores(counts, len(questions), scorers)
    out.file("scores.json").write_text(json.dumps(scores, indent=1) + "\n")
    return scores


def _file(files: ExitStack, out: Writer, name: str, wanted: bool) -> TextIO | None:
    return files.enter_context(out.file(name).open("w", encoding="utf-8")) if wanted else None


def _outcomes(
    evaluated: EvaluatedSystem, questions: Sequence[Question], hits: int, batch_size: int
) -> Iterator[Outcome]:
    searcher, answerer = evaluated.searcher, evaluated.answerer
    for start in range(0, len(questions), batch_size):
        batch = questions[start : start + batch_size]
        tokens = evaluated.tokens(batch)
        found = searcher.search(tokens, hits) if searcher else [[] for _ in batch]
        blocks = searcher.corpus.blocks({hit.row for best in found for hit in best}) if searcher else {}
        answers = answerer.answer(tokens, found, 1) if answerer else None
        for place, question in enumerate(batch):
            best = next(iter(answers[place]), None) if answers else None
            prediction = None if answers is None else best.text if best else ""
            evidence = _evidence(question, answerer.reader_beam if answerer else 0, found[place], best)
            yield Outcome(question, _contexts(question, found[place], blocks), prediction, evidence)


def _evidence(question: Question, beam: int, hits: Sequence[Hit], answer: Answer | None) -> dict[str, Any]:
    """Correct answers, number of blocks read, and the prediction's score, its block's rank (from 1) and its offsets there."""
    known = {"answers": list(question.answers), "read": min(len(hits), beam)}
    if answer is None:
        return known
    if answer.evidence is None:
        return {**known, "score": answer.score}
    place = answer.evidence
    rank = 1 + [hit.row for hit in hits].index(place.hit.row)
    return {**known, "score": answer.score, "rank": rank, "start": place.start, "end": place.end}


def _contexts(question: Question, hits: Sequence[Hit], blocks: dict[int, Block]) -> list[dict[str, Any]]:
    words, raw = AnswerSearch(question, "tokens"), AnswerSearch(question, "substring")
    contexts = []
    for hit in hits:
        block = blocks[hit.row]
        context = {
            "id": block.id,
            "title": block.title,
            "text": block.text,
            "score": hit.score,
            "has_answer": words(block.text),
        }
        if not question.is_regex:
            context["has_answer_substring"] = raw(block.text)
        if question.provenance:
            context["has_provenance"] = block.document in question.provenance
        contexts.append(context)
    return contexts


def _retrieved(outcome: Outcome) -> str:
    question = outcome.question
    entry = {"question": question.question, "answers": list(question.answers), "ctxs": outcome.contexts}
    return json.dumps(entry, ensure_ascii=False)


def _predicted(outcome: Outcome) -> str:
    return json.dumps({"question": outcome.question.question, "prediction": outcome.prediction}, ensure_ascii=False)


def _count_recall(outcome: Outcome, hits: int, counts: Counter[str]) -> None:
    tests = (
        {
            "has_answer": "recall",
            "has_answer_substring": "substring_recall",
            "has_provenance": "provenance_recall",
        }
        if outcome.question.answers
        else {"has_provenance": "provenance_recall"}
    )
    for depth in (depth for depth in DEPTHS if depth <= hits):
        for test, name in tests.items():
            found = [context[test] for context in outcome.contexts[:depth] if test in context]
            if found:
                counts[f"{name}@{depth}"] += any(found)


def _count_matches(result: ScoredPrediction, counts: Counter[str]) -> None:
    counts["disagreements"] += result.disagrees
    for name, verdict in result.verdicts.items():
        counts[f"em_{name}"] += verdict is AnswerVerdict.MATCH
        if verdict not in (AnswerVerdict.MATCH, AnswerVerdict.NO_MATCH):
            counts[f"{name}_{verdict.name.lower()}"] += 1


def _scores(counts: Counter[str], questions: int, scorers: Sequence[Scorer]) -> dict[str, Any]:
    shares = {
        name: round(count / questions, 6) for name, count in counts.items() if "@" in name or name.startswith("em_")
    }
    troubles = {name: count for name, count in counts.items() if name not in shares}
    headline = {"em": shares[f"em_{scorers[0]}"], "scorer": scorers[0]} if scorers else {}
    return {"questions": questions, **headline, **shares, **troubles}
