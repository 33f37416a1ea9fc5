"""Queries with relevance judgements, and training sets of them.

The judgements name documents by id. A training set needs texts, which `with_texts` takes from a corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from realmctl.corpus.document import Document, cleaned
from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError
from realmctl.extras.ir.labelled import LabelledQuestion, read_labelled
from realmctl.extras.ir.ranking.beir import corpus_file, is_beir, qrels_file, queries_file
from realmctl.extras.ir.ranking.qrels import read_qrels
from realmctl.extras.ir.ranking.queries import read_queries
from realmctl.log import warn
from realmctl.questions.questions import Question


def training_questions(
    passages: Path, qrels: Path | None = None, corpus: Sequence[Path] = ()
) -> Iterator[LabelledQuestion]:
    """Yield the questions of a training set with the texts of their passages.

    Args:
        passages: a training file of DPR or Tevatron, a BEIR folder, or a file of queries if `qrels` is given.
        qrels: judgements of the queries. Documents judged 0 or below are hard negatives.
        corpus: files with the documents that the training set names by id.

    Raises:
        InputError: a file is malformed, or the corpus has none of the documents.
    """
    if is_beir(passages):
        qrels, corpus = qrels_file(qrels or passages, "train"), corpus or (corpus_file(passages),)
    if qrels is None:
        return with_texts(read_labelled(passages), corpus)
    return with_texts(_judged_passages(queries_file(passages), qrels), corpus)


def with_texts(questions: Iterable[LabelledQuestion], corpus: Sequence[Path]) -> Iterator[LabelledQuestion]:
    """Yield the questions with the texts of the passages that are named by id alone.

    Only these texts are kept in memory. A passage that the corpus does not hold is left out, and a warning counts them.

    Raises:
        InputError: passages are named by id and no corpus is given, or it holds none of them.
    """
    if not corpus:
        for question in questions:
            if missing := next((each for each in _passages(question) if each.id), None):
                raise InputError(
                    f"The training set names passage {missing.id!r} by its id alone. Name the corpus that holds the passages with "
                    "--corpus."
                )
            yield question
        return
    held = list(questions)
    wanted = {passage.id for question in held for passage in _passages(question) if passage.id}
    texts = dict(_texts(wanted, corpus))
    if wanted and not texts:
        raise InputError(
            f"{', '.join(map(str, corpus))}: no document has an id of the training set, such as {min(wanted)!r}. Name the corpus of "
            "this training set."
        )
    if len(texts) < len(wanted):
        warn(f"{len(wanted) - len(texts)} of {len(wanted)} passages are not in the corpus, and are left out")
    for question in held:
        good, bad = ([_filled(each, texts) for each in some] for some in (question.positives, question.negatives))
        scores = (score for score, passage in zip(question.scores, (*good, *bad), strict=False) if passage)
        yield replace(
            question, positives=tuple(filter(None, good)), negatives=tuple(filter(None, bad)), scores=tuple(scores)
        )


def judged_alone(queries: Path, qrels: Path) -> Iterator[Question]:
    """Yield the queries that are judged, in the order of their file.

    Args:
        queries: a file of queries, or a BEIR folder.
        qrels: a file of judgements, or a BEIR folder, whose split test is taken.

    Raises:
        InputError: no query is judged, or a file is malformed.
    """
    return (query for query, _ in _judged(queries_file(queries), qrels_file(qrels, "test")))


def _judged(queries: Path, qrels: Path) -> Iterator[tuple[Question, dict[str, int]]]:
    """Yield the judged queries in the order of their file, with their judgements."""
    judged = read_qrels(qrels)
    count, first = 0, ""
    for query in read_queries(queries):
        first = first or query.id
        if query.id in judged:
            count += 1
            yield query, judged[query.id]
    if not count:
        raise InputError(
            f"{queries}: its queries, such as {first!r}, are not judged in {qrels}, which judges {next(iter(judged))!r}. Name the judgements of these queries."
        )
    if count < len(judged):
        warn(f"{queries}: {len(judged) - count} judged queries are not in it, and are left out")


def _judged_passages(queries: Path, qrels: Path) -> Iterator[LabelledQuestion]:
    for query, judged in _judged(queries, qrels):
        passages = {name: Document(name, "", "") for name in judged}
        yield LabelledQuestion(
            query.question,
            tuple(passage for name, passage in passages.items() if judged[name] > 0),
            tuple(passage for name, passage in passages.items() if judged[name] <= 0),
            query.id,
        )


def _passages(question: LabelledQuestion) -> Iterator[Document]:
    yield from question.positives
    yield from question.negatives


def _texts(wanted: set[str], corpus: Sequence[Path]) -> Iterator[tuple[str, Document]]:
    for page in documents(corpus, CorpusSettings(keep_lists=True)):
        if page.id in wanted and isinstance(found := cleaned(page), Document):
            yield page.id, Document("", found.title, found.text)


def _filled(passage: Document, texts: dict[str, Document]) -> Document | None:
    return texts.get(passage.id) if passage.id else passage
