"""Scores of a question set: exact match under every scorer, recall of the retrieval, and files that others can re-score.

predictions.jsonl is the input of ORQA's evaluator, retrieved.json is DPR's retrieval result.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TextIO, get_args

from realmctl.artifact import Writer
from realmctl.errors import ConfigError
from realmctl.log import progress
from realmctl.retrieval.qa import Answer, Hit, QuestionAnswerer, Searcher, evidence
from realmctl.text.answers import Scorer, has_answer, judge
from realmctl.text.questions import Question
from realmctl.text.regexes import Verdict

DEPTHS = (1, 5, 20, 100)
REGEX_SCORERS = ("regex-match", "regex-search")


def evaluate(
    searcher: Searcher, questions: Sequence[Question], out: Writer, *, scorer: str, hits: int, batch_size: int
) -> dict[str, Any]:
    """Answer every question (with a Searcher alone: only retrieve) and write scores.json, predictions and evidence.

    Recall@k counts an answer as found when a hit holds it as words (DPR's test), `substring_recall@k` as raw text (ORQA's).
    Raises ConfigError when the scorer does not suit the answers.
    """
    scorers = _scorers(questions, scorer)
    counts: Counter[str] = Counter()
    reads = isinstance(searcher, QuestionAnswerer)
    with out.file("retrieved.json").open("w", encoding="utf-8") as retrieved, progress(len(questions), "answering", "questions") as bar:
        predictions = out.file("predictions.jsonl").open("w", encoding="utf-8") if reads else None
        for number, (question, found, answers) in enumerate(_answered(searcher, questions, hits, batch_size)):
            contexts = [_context(searcher, question, hit) for hit in found]
            _count_recall(contexts, counts)
            _write_context(retrieved, number, question, contexts)
            if predictions:
                text = answers[0].text if answers else ""
                predictions.write(json.dumps({"question": question.question, "prediction": text}, ensure_ascii=False) + "\n")
                _count_matches(text, question, scorers, counts)
            bar.advance()
        retrieved.write("\n]\n" if questions else "[]\n")
        if predictions:
            predictions.close()
    scores = _scores(counts, len(questions), scorers if reads else [])
    out.file("scores.json").write_text(json.dumps(scores, indent=1) + "\n")
    return scores


def _scorers(questions: Sequence[Question], wanted: str) -> list[str]:
    """The scorers that suit these answers, the headline first."""
    regex = any(question.is_regex for question in questions)
    fitting = list(REGEX_SCORERS) if regex else [name for name in get_args(Scorer) if name not in REGEX_SCORERS]
    if wanted != "auto" and wanted not in fitting:
        what = "are regular expressions" if regex else "are not regular expressions"
        raise ConfigError(f"--scorer {wanted}: the answers of this file {what}. Use {' or '.join(fitting)}, or --regex-answers/--no-regex-answers.")
    return fitting if wanted == "auto" else [wanted, *(name for name in fitting if name != wanted)]


def _answered(
    searcher: Searcher, questions: Sequence[Question], hits: int, batch_size: int
) -> Iterator[tuple[Question, list[Hit], list[Answer]]]:
    for start in range(0, len(questions), batch_size):
        batch = questions[start : start + batch_size]
        tokens = searcher.tokens([question.question for question in batch])
        found = searcher.search(tokens, hits)
        answers = searcher.answer(tokens, found, 1) if isinstance(searcher, QuestionAnswerer) else [[] for _ in batch]
        yield from zip(batch, found, answers, strict=True)


def _context(searcher: Searcher, question: Question, hit: Hit) -> dict[str, Any]:
    found = evidence(hit, searcher.corpus.record(hit.row))
    test = "regex" if question.is_regex else "tokens"
    substring = not question.is_regex and has_answer(found["text"], question.answers, "substring")
    return {**found, "has_answer": has_answer(found["text"], question.answers, test), "has_answer_substring": substring}


def _count_recall(contexts: Sequence[dict[str, Any]], counts: Counter[str]) -> None:
    for depth in DEPTHS:
        counts[f"recall@{depth}"] += any(context["has_answer"] for context in contexts[:depth])
        counts[f"substring_recall@{depth}"] += any(context["has_answer_substring"] for context in contexts[:depth])


def _count_matches(prediction: str, question: Question, scorers: Sequence[str], counts: Counter[str]) -> None:
    for name in scorers:
        verdict = judge(prediction, question.answers, name)  # type: ignore[arg-type]
        counts[f"em_{name}"] += verdict is Verdict.MATCH
        if verdict not in (Verdict.MATCH, Verdict.NO_MATCH):
            counts[f"{name}_{verdict.name.lower()}"] += 1


def _write_context(file: TextIO, number: int, question: Question, contexts: Sequence[dict[str, Any]]) -> None:
    entry = {"question": question.question, "answers": list(question.answers), "ctxs": contexts}
    file.write(("[\n" if number == 0 else ",\n") + json.dumps(entry, ensure_ascii=False))


def _scores(counts: Counter[str], questions: int, scorers: Sequence[str]) -> dict[str, Any]:
    shares = {name: round(count / questions, 6) for name, count in counts.items() if "@" in name or name.startswith("em_")}
    troubles = {name: count for name, count in counts.items() if name not in shares}
    headline = {"em": shares[f"em_{scorers[0]}"], "scorer": scorers[0]} if scorers else {}
    return {"questions": questions, **headline, **shares, **troubles}
