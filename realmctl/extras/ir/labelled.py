"""Read questions with labelled passages: the training files of DPR, Tevatron, FlagEmbedding and sentence-transformers.

DPR's (github.com/facebookresearch/DPR, biencoder-*.json) is a JSON list with `positive_ctxs` and `hard_negative_ctxs`.
Tevatron's (github.com/texttron/tevatron) has JSON lines, or rows of Parquet, with `positive_passages` and
`negative_passages`; in version 2 `positive_document_ids` and `negative_document_ids` name passages of a corpus. FlagEmbedding's JSON lines have lists of texts, `pos` and `neg`, and
the pairs and triplets of sentence-transformers one text each, `positive` and `negative`, or `negative_1`, `negative_2` and so on. DPR's list has tens of gigabytes as Python objects, so it is read one record at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from realmctl.corpus.document import Document
from realmctl.errors import InputError, listed
from realmctl.inputs import streams
from realmctl.inputs.dataset_folders import only_split
from realmctl.inputs.rows import Row, columnar, first_of, is_columnar, json_lines, json_list

QUESTIONS = ("question", "query", "query_text", "anchor")
TEXTS_OF_POSITIVES = ("positive", "pos")
TEXTS_OF_NEGATIVES = ("negative", "neg", *(f"negative_{number}" for number in range(1, 101)))
"""Fields in which a text is a passage. In the others it is the id of one."""
POSITIVES = ("positive_ctxs", "positive_passages", "positive_document_ids", *TEXTS_OF_POSITIVES)
IDS_OF_QUESTIONS = ("query_id", "question_id", "qid")
NEGATIVES = ("hard_negative_ctxs", "negative_passages", "negative_document_ids", *TEXTS_OF_NEGATIVES)
IDS = ("docid", "passage_id", "psg_id", "_id", "id")


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, the passages that answer it, and passages that look as if they did.

    A passage that its file names by its id alone has this id and no text; any other has a text and no id. id: the question's; empty if it has
    none. scores: a teacher's, of the positives and then of the negatives; None for one without. Empty where none has one.
    """

    question: str
    positives: tuple[Document, ...]
    negatives: tuple[Document, ...]
    id: str = field(default="", compare=False)
    scores: tuple[float | None, ...] = field(default=(), compare=False)


def read_labelled(path: Path) -> Iterator[LabelledQuestion]:
    """Yield the questions of a training file, or of a dataset folder with one split, in its order.

    A list of passages may be empty. A passage that is named by its id alone has no text.

    Raises:
        InputError: the file has none of these layouts, or a record is malformed. The message names the record.
    """
    for where, _, record in _rows(path):
        question = first_of(record, QUESTIONS)
        if not isinstance(question, str) or not question.strip() or first_of(record, POSITIVES) is None:
            raise InputError(
                f"{where}: this is not a question with labelled passages. It needs {' or '.join(QUESTIONS)} and "
                f"{' or '.join(POSITIVES)}, and has {listed(record)}. Queries and judgements in files of their own are "
                "read with --qrels and --corpus."
            )
        good, bad = _passages(record, POSITIVES, where), _passages(record, NEGATIVES, where)
        scores = tuple(score for _, score in (*good, *bad))
        identity = first_of(record, IDS_OF_QUESTIONS)
        yield LabelledQuestion(
            question,
            tuple(passage for passage, _ in good),
            tuple(passage for passage, _ in bad),
            "" if identity is None else str(identity),
            scores if any(score is not None for score in scores) else (),
        )


def known_answers(questions: Sequence[LabelledQuestion]) -> list[list[Document]]:
    """Return for each question the positives of all questions with its id or its text, in whatever case and space. None of them is its negative."""
    answers = defaultdict[tuple[str, str], list[Document]](list)
    keys = [
        [("text", " ".join(each.question.lower().split())), *([("id", each.id)] if each.id else [])]
        for each in questions
    ]
    for own, question in zip(keys, questions, strict=True):
        for key in own:
            answers[key] += question.positives
    return [[passage for key in own for passage in answers[key]] for own in keys]


def _passages(record: Mapping[str, object], names: tuple[str, ...], where: str) -> list[tuple[Document, float | None]]:
    """The passages of a record with their scores: a field of the passage, or an item of FlagEmbedding's `pos_scores` and `neg_scores`."""
    try:
        scored = [
            (_passage(item, name in (*TEXTS_OF_POSITIVES, *TEXTS_OF_NEGATIVES)), _score(item, scores, place))
            for name in names
            for scores in [_items(record.get(f"{name}_scores"))]
            for place, item in enumerate(_items(record.get(name)))
        ]
        passages = [passage for passage, _ in scored]
        "".join(part for passage in passages for part in (passage.id, passage.title, passage.text)).encode()
    except (TypeError, KeyError, AttributeError, UnicodeEncodeError) as error:
        raise InputError(
            f"{where}: {' or '.join(name for name in names if name in record)} is not a list of passages with a text "
            f"({type(error).__name__}: {error}). "
            "Correct or remove the record."
        ) from None
    return [(passage, score) for passage, score in scored if passage.text.strip() or passage.id]


def _score(item: Any, scores: Sequence[Any], place: int) -> float | None:
    value = item.get("score") if isinstance(item, Mapping) else scores[place] if place < len(scores) else None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)


def _items(value: Any) -> Any:
    return () if value is None else [value] if isinstance(value, str) else value


def _passage(item: Any, is_text: bool) -> Document:
    """Return a passage with its text, or with its id if it has no text. Raises KeyError if it has neither.

    is_text: whether a text is the passage, and not its id.
    """
    if is_text and isinstance(item, str):
        return Document("", "", item)
    if not is_text and isinstance(item, str | int):
        return Document(str(item), "", "")
    if item.get("text") is None and (identity := first_of(item, IDS)) is not None:
        return Document(str(identity), "", "")
    return Document("", item.get("title") or "", item["text"])


def _rows(path: Path) -> Iterator[Row]:
    if (training := path / "train.jsonl").is_file():  # of mine-negatives, and of data sets
        return _rows(training)
    if path.is_dir():
        return (row for file in only_split(path) for row in _rows(file))
    start = streams.head(path).lstrip(b"\xef\xbb\xbf \t\r\n")
    if is_columnar(start):
        columns = (*QUESTIONS, *IDS_OF_QUESTIONS, *POSITIVES, *NEGATIVES, "pos_scores", "neg_scores")
        return columnar(path, columns, needed=POSITIVES)
    return json_list(path) if start.startswith(b"[") else json_lines(path)
