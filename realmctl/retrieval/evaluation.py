"""Scores of a question set: exact match under every scorer, recall of the retrieval, and files that others can re-score.

predictions.jsonl is the input of ORQA's evaluator, retrieved.json is DPR's retrieval result; disagreements.jsonl has
the questions that some scorer calls right and another wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from realmctl.artifact import Writer
from realmctl.log import progress
from realmctl.retrieval.answer_search import AnswerSearch
from realmctl.retrieval.qa import Answer, Hit, QuestionAnswerer, Searcher
from realmctl.text.answers import Scorer
from realmctl.text.questions import Question
from realmctl.text.regexes import Verdict
from realmctl.text.scoring import Judged, fitting_scorers, judged

DEPTHS = (1, 5, 20, 100)


@dataclass(frozen=True)
class Outcome:
    """A question, the blocks retrieved for it as DPR's `ctxs`, and the predicted answer (None: nobody read)."""

    question: Question
    contexts: list[dict[str, Any]]
    prediction: str | None


def evaluate(
    searcher: Searcher, questions: Sequence[Question], out: Writer, *, scorer: str, hits: int, batch_size: int
) -> dict[str, Any]:
    """Answer every question (with a Searcher alone: only retrieve) and write scores.json, predictions and evidence.

    Recall@k counts an answer as found when a hit holds it as words (DPR's test), `substring_recall@k` as raw text (ORQA's).
    Raises ConfigError when the scorer does not suit the answers.
    """
    scorers = fitting_scorers(questions, scorer) if isinstance(searcher, QuestionAnswerer) else []
    counts: Counter[str] = Counter()
    with ExitStack() as files, progress(len(questions), "answering", "questions") as bar:
        retrieved = files.enter_context(out.file("retrieved.json").open("w", encoding="utf-8"))
        predictions, disagreements = (
            files.enter_context(out.file(name).open("w", encoding="utf-8")) if scorers else None
            for name in ("predictions.jsonl", "disagreements.jsonl")
        )
        for number, outcome in enumerate(_outcomes(searcher, questions, hits, batch_size)):
            retrieved.write(("[\n" if number == 0 else ",\n") + _retrieved(outcome))
            _count_recall(outcome, hits, counts)
            if predictions and disagreements:
                predictions.write(_predicted(outcome) + "\n")
                result = judged(outcome.question, outcome.prediction or "", scorers)
                _count_matches(result, counts)
                if result.disagrees:
                    disagreements.write(json.dumps(result.record(), ensure_ascii=False) + "\n")
            bar.advance()
        retrieved.write("\n]\n" if questions else "[]\n")
    scores = _scores(counts, len(questions), scorers)
    out.file("scores.json").write_text(json.dumps(scores, indent=1) + "\n")
    return scores


def _outcomes(searcher: Searcher, questions: Sequence[Question], hits: int, batch_size: int) -> Iterator[Outcome]:
    for start in range(0, len(questions), batch_size):
        batch = questions[start : start + batch_size]
        tokens = searcher.tokens([question.question for question in batch])
        found = searcher.search(tokens, hits)
        records = searcher.corpus.records_of({hit.row for best in found for hit in best})
        answers: list[list[Answer]] | None = (
            searcher.answer(tokens, found, 1) if isinstance(searcher, QuestionAnswerer) else None
        )
        for place, question in enumerate(batch):
            prediction = None if answers is None else next((answer.text for answer in answers[place]), "")
            yield Outcome(question, _contexts(question, found[place], records), prediction)


def _contexts(question: Question, hits: Sequence[Hit], records: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    words, raw = AnswerSearch(question, "tokens"), AnswerSearch(question, "substring")
    contexts = []
    for hit in hits:
        record = records[hit.row]
        context = {
            **{name: record[name] for name in ("id", "title", "text")},
            "score": hit.score,
            "has_answer": words(record["text"]),
        }
        contexts.append(context if question.is_regex else {**context, "has_answer_substring": raw(record["text"])})
    return contexts


def _retrieved(outcome: Outcome) -> str:
    question = outcome.question
    entry = {"question": question.question, "answers": list(question.answers), "ctxs": outcome.contexts}
    return json.dumps(entry, ensure_ascii=False)


def _predicted(outcome: Outcome) -> str:
    return json.dumps({"question": outcome.question.question, "prediction": outcome.prediction}, ensure_ascii=False)


def _count_recall(outcome: Outcome, hits: int, counts: Counter[str]) -> None:
    tests = {"has_answer": "recall", "has_answer_substring": "substring_recall"}
    for depth in (depth for depth in DEPTHS if depth <= hits):
        for test, name in tests.items():
            found = [context[test] for context in outcome.contexts[:depth] if test in context]
            if found:
                counts[f"{name}@{depth}"] += any(found)


def _count_matches(result: Judged, counts: Counter[str]) -> None:
    for name, verdict in result.verdicts.items():
        counts[f"em_{name}"] += verdict is Verdict.MATCH
        if verdict not in (Verdict.MATCH, Verdict.NO_MATCH):
            counts[f"{name}_{verdict.name.lower()}"] += 1


def _scores(counts: Counter[str], questions: int, scorers: Sequence[Scorer]) -> dict[str, Any]:
    shares = {
        name: round(count / questions, 6) for name, count in counts.items() if "@" in name or name.startswith("em_")
    }
    troubles = {name: count for name, count in counts.items() if name not in shares}
    headline = {"em": shares[f"em_{scorers[0]}"], "scorer": scorers[0]} if scorers else {}
    return {"questions": questions, **headline, **shares, **troubles}
