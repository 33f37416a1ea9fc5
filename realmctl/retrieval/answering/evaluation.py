"""Evaluation on a file of questions: exact match under every scorer, recall of the retrieval, and files to score elsewhere.

predictions.jsonl is the input of ORQA's evaluator. retrieved.json is DPR's retrieval result, one question a line.
evidence.jsonl has the answers, and the block and span of each prediction. disagreements.jsonl has the questions that one
scorer accepts and another rejects, and per-query.jsonl the measures of each question. A model without retrieval has no recall and no blocks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TextIO

from realmctl.artifacts import Artifact, Writer
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.execution.batches import batched
from realmctl.log import progress, warn
from realmctl.questions.answer_search import AnswerSearch
from realmctl.questions.per_query import PER_QUERY, PerQuery
from realmctl.questions.questions import Question, read_questions
from realmctl.questions.regexes import AnswerVerdict
from realmctl.questions.scorers import Scorer
from realmctl.questions.scoring import ScoredPrediction, fitting_scorers, judged
from realmctl.retrieval.answering.qa_model import AnsweredQuestion, Answering, QaModel
from realmctl.retrieval.answering.score_files import (
    EVIDENCE,
    PREDICTIONS,
    RETRIEVED,
    Context,
    Entry,
    Evidence,
    Prediction,
)
from realmctl.retrieval.answering.settings import EvalSettings
from realmctl.retrieval.names import option_of_bm25
from realmctl.retrieval.search.block_search import Hit, SearchInputs
from realmctl.retrieval.search.searcher import Searcher, searcher_type

DEPTHS = (1, 5, 20, 100)
DISAGREEMENTS = "disagreements.jsonl"


def check_evaluation(settings: EvalSettings) -> None:
    """Raise ConfigError unless a model or a searcher alone is named, with what it needs."""
    kind = searcher_type(settings.retrieval or "dense")
    parts = settings.retriever is not None or settings.index is not None
    if settings.retrieval and (settings.qa_model or (parts and not kind.uses_index)):
        raise ConfigError(
            f"--retrieval {settings.retrieval} evaluates that searcher alone. Leave out --qa-model, which has its own searcher, and "
            "--retriever and --index unless the searcher uses them."
        )
    if settings.qa_model is None and not settings.retrieval and not (settings.retriever and settings.index):
        raise ConfigError("eval-em needs --qa-model, or --retriever and --index together, or --retrieval bm25.")
    given = option_of_bm25(settings.bm25_stemmer, settings.bm25_tokens)
    if given and settings.retrieval != "bm25":
        raise ConfigError(f"{given} is for --retrieval bm25. A fine-tuned model keeps its own BM25.")
    if settings.qa_model is None:
        kind.check(_search_inputs(settings))


def evaluate(settings: EvalSettings, out: Writer) -> dict[str, object]:
    """Answer every question, or only retrieve with a searcher alone, and write scores.json, predictions and evidence.

    f1: mean overlap of prediction and answer by the main scorer, where answers are texts.
    recall@k: share of the questions with a hit that holds an answer as words (DPR's test). substring_recall@k: as raw text
    (ORQA's test). provenance_recall@k: share with a hit of a document that the question names, where questions do (KILT, BEIR).
    Questions without answers have only the last one. Beside them stand what the model itself measures (`Answering.measures`).
    Raises ConfigError when the scorer does not suit the answers.
    """
    asked = read_questions(settings.questions, is_regex=settings.regex_answers, answer_field=settings.answer_field)
    questions, hits, system = asked[: settings.limit], settings.hits, settings.system()
    qa = system if isinstance(system, Answering) else None
    searches = not isinstance(system, QaModel) or system.answerer.searcher is not None
    scorers = fitting_scorers(questions, settings.scorer) if qa else []
    counts: Counter[str] = Counter({"disagreements": 0} if scorers else {})
    with ExitStack() as files, progress(len(questions), "answering", "questions") as bar:

        def opened(name: str, wanted: bool) -> TextIO | None:
            return files.enter_context(out.file(name).open("w", encoding="utf-8")) if wanted else None

        retrieved = opened(RETRIEVED, searches)
        predictions, evidence = opened(PREDICTIONS, bool(scorers)), opened(EVIDENCE, bool(scorers))
        disagreements = opened(DISAGREEMENTS, bool(scorers))
        measured = PerQuery(files.enter_context(out.file(PER_QUERY).open("w", encoding="utf-8")))
        for number, (question, found) in enumerate(_answered(system, questions, hits, settings.batch_size)):
            values: dict[str, float] = {}
            if retrieved:
                contexts = _contexts(question, found.hits)
                entry = Entry(question=question.question, answers=list(question.answers), ctxs=contexts)
                retrieved.write(("[\n" if number == 0 else ",\n") + json.dumps(entry, ensure_ascii=False))
                values |= _recall(question, contexts, hits)
            if qa and predictions and evidence and disagreements:
                prediction = found.answers[0].text if found.answers else ""
                predicted = Prediction(id=question.id, question=question.question, prediction=prediction)
                predictions.write(json.dumps(predicted, ensure_ascii=False) + "\n")
                read = min(len(found.hits), qa.reads)
                evidence.write(json.dumps(_evidence(question, read, found), ensure_ascii=False) + "\n")
                result = judged(question, prediction, scorers)
                values = {**_matches(result, scorers[0]), **values}
                counts.update(_troubles(result))
                if result.disagrees:
                    disagreements.write(json.dumps(result.record(), ensure_ascii=False) + "\n")
            measured.add(question.id, values, question.question)
            bar.advance()
        if retrieved:
            retrieved.write("\n]\n" if questions else "[]\n")
    scores: dict[str, object] = {"questions": len(questions), **({"scorer": scorers[0]} if scorers else {})}
    scores |= {**measured.means(), **counts}
    if searches and settings.blocks is not None:
        _tell_unknown(settings.blocks, questions)
    if qa:
        scores |= qa.measures()
    out.file("scores.json").write_text(json.dumps(scores, indent=1) + "\n")
    return scores


def _search_inputs(settings: EvalSettings) -> SearchInputs:
    return SearchInputs.of(settings, bm25_stemmer=settings.bm25_stemmer, bm25_tokens=settings.bm25_tokens)


def system_of(settings: EvalSettings) -> Answering | Searcher:
    """Open the fine-tuned model, or the searcher that is evaluated alone."""
    if settings.qa_model is None:
        return searcher_type(settings.retrieval or "dense").start(_search_inputs(settings))
    return QaModel.open(
        settings.qa_model,
        blocks=settings.blocks,
        index=settings.index,
        reader_beam=settings.reader_beam,
        device=settings.device,
        precision=settings.precision,
        official_text="answer-text" in settings.official,
    )


def _answered(
    system: Answering | Searcher, questions: Sequence[Question], hits: int, batch_size: int
) -> Iterator[tuple[Question, AnsweredQuestion]]:
    """Yield each question with its best answer and its hits. A searcher alone gives hits and no answer."""
    for batch in batched(questions, batch_size):
        texts = [question.question for question in batch]
        if isinstance(system, Answering):
            yield from zip(batch, system.answer(texts, 1, k=hits, batch_size=batch_size), strict=True)
        else:
            for question, own in zip(batch, system.search(system.tokens(texts), hits), strict=True):
                yield question, AnsweredQuestion(question.question, (), tuple(own))


def _evidence(question: Question, read: int, found: AnsweredQuestion) -> Evidence:
    known = Evidence(answers=list(question.answers), read=read)
    for answer in found.answers[:1]:
        known["score"] = answer.score
        if answer.hit is not None:
            known["rank"] = 1 + [hit.row for hit in found.hits].index(answer.hit.row)
            known["start"], known["end"] = answer.start or 0, answer.end or 0
    return known


def _contexts(question: Question, hits: Sequence[Hit]) -> list[Context]:
    """The hits as DPR's `ctxs`."""
    words, raw = AnswerSearch(question, "tokens"), AnswerSearch(question, "substring")
    contexts = []
    for hit in hits:
        block = hit.block
        context = Context(
            id=block.id, title=block.title, text=block.text, score=hit.score, has_answer=words(block.text)
        )
        if not question.is_regex:
            context["has_answer_substring"] = raw(block.text)
        if question.provenance:
            context["has_provenance"] = block.document in question.provenance
        contexts.append(context)
    return contexts


def _recall(question: Question, contexts: Sequence[Context], hits: int) -> dict[str, float]:
    """Whether a hit passes each test that can be made of the question, 0 or 1, at each depth."""
    tests = {
        "recall": "has_answer" if question.answers else "",
        "substring_recall": "has_answer_substring" if question.answers and not question.is_regex else "",
        "provenance_recall": "has_provenance" if question.provenance else "",
    }
    return {
        f"{name}@{depth}": float(any(context.get(test) for context in contexts[:depth]))
        for depth in DEPTHS
        if depth <= hits
        for name, test in tests.items()
        if test
    }


def _tell_unknown(blocks: Artifact, questions: Sequence[Question]) -> None:
    """Warn of the documents that the questions name and the blocks do not have: no search finds them, and they count as missed."""
    named = {name for question in questions for name in question.provenance}
    if named and (missing := Corpus(blocks).lacking(named)):
        warn(
            f"{len(missing):,} of {len(named):,} documents that the questions name are not in {blocks.path}, such as {min(missing)!r}. They count "
            "as not found. If the documents have other ids in the blocks, name the field of these with chunk --id-field, or correct the judgements."
        )


def _matches(result: ScoredPrediction, scorer: Scorer) -> dict[str, float]:
    """Exact match by the main scorer and by each, and F1 where answers are texts."""
    exact = {name: float(verdict is AnswerVerdict.MATCH) for name, verdict in result.verdicts.items()}
    overlap = {} if result.f1 is None else {"f1": result.f1}
    return {"em": exact[scorer], **overlap, **{f"em_{name}": value for name, value in exact.items()}}


def _troubles(result: ScoredPrediction) -> Counter[str]:
    """What is counted beside the measures: disagreements, and verdicts that are neither a match nor none, by scorer."""
    odd = (
        f"{name}_{verdict.name.lower()}"
        for name, verdict in result.verdicts.items()
        if verdict not in (AnswerVerdict.MATCH, AnswerVerdict.NO_MATCH)
    )
    return Counter({"disagreements": int(result.disagrees)}) + Counter(odd)
