"""Score a file of predictions against a file of questions, without artifacts and models.

Questions are identified by their text, as by ORQA's evaluator: of several references or predictions with one text, the last counts.
Where predictions name ids, references with one text are told apart by them; SQuAD's predictions, and the lists of Hugging Face's metrics, name
ids alone. A question without a prediction, or with one that is null or NaN, is wrong. A prediction for an unknown question is ignored. An empty prediction is right for a question
of SQuAD 2 that has no answer.

Sources: orqa/utils/eval_utils.py, evaluate_predictions; SQuAD's evaluate-v1.1.py and evaluate-v2.0.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from realmctl.artifacts import open_artifact
from realmctl.errors import InputError, MismatchError
from realmctl.inputs.rows import Row, is_number, json_lines, json_list, parse_json
from realmctl.inputs.streams import head, whole_text
from realmctl.questions.questions import (
    MAX_DOCUMENT_BYTES,
    QUESTION_FIELDS,
    Placed,
    Question,
    answer_texts,
    identity_of,
    parse_questions,
    require_declared_patterns,
)
from realmctl.questions.regexes import AnswerVerdict
from realmctl.questions.scorers import Scorer
from realmctl.questions.scoring import ScoredPrediction, disagreements_text, fitting_scorers, judged

NAMED = re.compile(rb'"(question|prediction|prediction_text)"\s*:')
"""What JSON lines of predictions name, and SQuAD's predictions do not."""
NO_ANSWER = ("",)
"""The answers of a question that has none: an empty prediction is right."""
OF_LAYOUTS = ("SQuAD", "Parquet or Arrow", "a dataset folder")
"""Layouts that may say that a question has no answer, by an empty list beside those of others."""
FORMS = 'Write JSON lines {"question": ..., "prediction": ...}, as for SQuAD\'s script one object {"id of a question": "prediction", ...}, or a list of {"id": ..., "prediction_text": ...}.'


def score(
    predictions: Path,
    references: Path,
    *,
    scorer: Scorer | Literal["auto"] = "auto",
    is_regex: bool | None = None,
    answer_field: str | None = None,
) -> tuple[dict[str, Any], list[ScoredPrediction]]:
    """Return the scores, and each question with its verdicts in the order of `references`.

    The scores are `questions`, `unanswerable` ones where there are some, `missing` predictions, `repeated` references, questions with `several` predictions that differ, and `unknown` predicted questions; `em`,
    `f1` where answers are texts, and `scorer`, the main result; for each fitting scorer `em_<scorer>`, a share, and `right_<scorer>`, a count; and the
    numbers of patterns that were invalid or took too long.

    Raises:
        InputError: a file cannot be read, or a question has no answers. The message names file and line.
        ConfigError: `scorer` does not suit the answers.
    """
    predicted, several = _by_question(_predictions(predictions))
    questions, records = _references(references, is_regex, answer_field, by_id=any(name for _, name in predicted))
    scorers = fitting_scorers(questions, scorer)
    verdicts = [judged(question, _prediction_for(question, predicted), scorers) for question in questions]
    known = {("", question.id) for question in questions} | {(question.question, "") for question in questions}
    by_id_alone = {key for key in predicted if not key[0]}
    if by_id_alone and known.isdisjoint(by_id_alone):
        raise InputError(
            f"{predictions}: {min(by_id_alone)[1]!r} and the other names in it are ids of no question in {references}. {FORMS}"
        )
    unanswerable = sum(question.answers == NO_ANSWER for question in questions)
    counts = {
        "questions": len(questions),
        **({"unanswerable": unanswerable} if unanswerable else {}),
        "missing": sum(each.prediction is None for each in verdicts),
        "repeated": records - len(questions),
        "several": sum(_name_of(question, predicted) in several for question in questions),
        "unknown": len({(text, "") if text else (text, name) for text, name in predicted} - known),
    }
    return {**counts, **_exact_matches(verdicts, scorers)}, verdicts


def _by_question(
    predictions: Iterable[tuple[str, str, str]],
) -> tuple[dict[tuple[str, str], str], set[tuple[str, str]]]:
    """Return {(question, id): prediction}, either of which may be empty, and the names with several predictions that differ.

    The last prediction of a name counts. One with both stands under the question alone too.
    """
    found, several = dict[tuple[str, str], str](), set[tuple[str, str]]()
    for text, name, prediction in predictions:
        for key in {(text, name), (text, "") if text else (text, name)}:
            if found.get(key, prediction) != prediction:
                several.add(key)
            found[key] = prediction
    return found, several


def _prediction_for(question: Question, predicted: Mapping[tuple[str, str], str]) -> str | None:
    name = _name_of(question, predicted)
    return predicted[name] if name else None


def _name_of(question: Question, predicted: Mapping[tuple[str, str], str]) -> tuple[str, str] | None:
    keys = (question.question, question.id), ("", question.id), (question.question, "")
    return next((key for key in keys if key in predicted), None)


def _exact_matches(verdicts: Sequence[ScoredPrediction], scorers: Sequence[Scorer]) -> dict[str, Any]:
    tallies = {name: Counter(each.verdicts[name] for each in verdicts) for name in scorers}
    right = {name: tally[AnswerVerdict.MATCH] for name, tally in tallies.items()}
    shares = {f"em_{name}": round(count / len(verdicts), 6) for name, count in right.items()}
    troubles = {
        f"{name}_{verdict.name.lower()}": tally[verdict]
        for name, tally in tallies.items()
        for verdict in (AnswerVerdict.INVALID, AnswerVerdict.TIMEOUT)
        if tally[verdict]
    }
    headline: dict[str, Any] = {"em": shares[f"em_{scorers[0]}"], "scorer": scorers[0]}
    overlaps = [each.f1 for each in verdicts if each.f1 is not None]
    if overlaps:
        headline["f1"] = round(fmean(overlaps), 6)
    return {**headline, **shares, **{f"right_{name}": count for name, count in right.items()}, **troubles}


def _references(path: Path, is_regex: bool | None, answer_field: str | None, by_id: bool) -> tuple[list[Question], int]:
    """Return the questions and the number of records. Unlike `read_questions`, this drops no question.

    by_id: whether questions with one text and several ids are several questions.
    """
    layout, found = _of_metrics(path) or parse_questions(path, answer_field)
    questions: dict[tuple[str, str], Question] = {}
    records, empty = 0, ""
    for records, (where, question) in enumerate(found, start=1):
        if not question.answers:
            empty = empty or where
            question = replace(question, answers=NO_ANSWER)
        regular = question.is_regex if is_regex is None else is_regex
        name = question.id or str(records)
        questions[question.question, name if by_id else ""] = replace(question, id=name, is_regex=regular)
    if empty and (layout not in OF_LAYOUTS or all(question.answers == NO_ANSWER for question in questions.values())):
        raise InputError(
            f"{empty}: the list of answers is empty, so no prediction can be scored. Correct the record or take it out."
        )
    if is_regex is None:
        require_declared_patterns(path, list(questions.values()))
    if not questions:
        raise InputError(f"{path} holds no question, but references are expected.")
    return list(questions.values()), records


def _of_metrics(path: Path) -> tuple[str, Iterator[Placed]] | None:
    """Read the references of Hugging Face's metrics for SQuAD, which have no question: `{"id": ..., "answers": {"text": [...]}}`. None for others."""
    if path.is_dir() or _start(path)[:1] not in (b"[", b"{"):
        return None
    rows = _rows(path)
    try:
        first = next(iter(rows), None)
    except InputError:  # no list and no lines
        return None
    if first is None or not {"id", "answers"} <= {*first.fields} or {*QUESTION_FIELDS} & {*first.fields}:
        return None

    def read(row: Row) -> Placed:
        if not (name := identity_of(row.fields, row.where)) or "answers" not in row.fields:
            raise InputError(f"{row.where}: no id, or no answers, beside records that have both. Correct or remove it.")
        return row.where, Question(name, name, answer_texts(row.fields["answers"], row.where))

    return OF_LAYOUTS[0], map(read, _rows(path))


def _start(path: Path) -> bytes:
    return head(path).lstrip(b"\xef\xbb\xbf \t\r\n")


def _rows(path: Path) -> Iterator[Row]:
    return json_list(path) if _start(path).startswith(b"[") else json_lines(path)


def _predictions(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (question, id, prediction) of each record of JSON lines or of a list, or of SQuAD's object {id: prediction}; what is not named is empty."""
    start = _start(path)
    if start.startswith(b"{") and not NAMED.search(start):
        yield from _squad_predictions(path)
        return
    for where, _, record in _rows(path):
        question, given = record.get("question"), record.get("prediction", record.get("prediction_text"))
        if question is None and "prediction_text" in record and identity_of(record, where):
            question = ""
        prediction = _text_of(given)
        if isinstance(question, str) and given is None and {"prediction", "prediction_text"} & {*record}:
            continue  # how pandas writes that there is none
        if not isinstance(question, str) or prediction is None:
            held = ", ".join(record) or "nothing"
            raise InputError(
                f'{where}: no text under question and prediction; it has {held}. Write {{"question": ..., "prediction": '
                "...}, and leave out the questions that have no prediction."
            )
        yield question, identity_of(record, where), prediction


def _squad_predictions(path: Path) -> Iterator[tuple[str, str, str]]:
    try:
        found = parse_json(whole_text(path, MAX_DOCUMENT_BYTES), pairs=True)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: predictions cannot be read from it ({error}). {FORMS}") from None
    for name, value in found:
        if value is None:
            continue
        if (prediction := _text_of(value)) is None:
            raise InputError(f"{path}: {repr(value)[:60]} as the prediction for {name!r}. {FORMS}")
        yield "", name.strip(), prediction


def _text_of(value: object) -> str | None:
    """Return a prediction: a text, or a number as it is written; None for anything else."""
    return str(value) if isinstance(value, str) or is_number(value) else None


def scores_text(value: Mapping[str, Any]) -> str:
    """Format the scores, and the disagreements if there are any, for people."""
    names = [name.removeprefix("em_") for name in value if name.startswith("em_")]
    lines = [
        f"{value['questions']} questions, {value['missing']} without a prediction",
        *(f"{name:<13} {value[f'em_{name}']:.4f} ({value[f'right_{name}']}/{value['questions']})" for name in names),
    ]
    if "f1" in value:
        lines.append(f"{'F1 by ' + value['scorer']:<13} {value['f1']:.4f}")
    lines += [f"{count} {what}" for what, count in _remarks(value).items() if count]
    if "disagreements" in value:
        lines += ["", disagreements_text(value["disagreements"])]
    return "\n".join(lines)


def _remarks(value: Mapping[str, Any]) -> dict[str, int]:
    troubles = {
        f"answers could not be run by {name.rpartition('_')[0]}: {name.rpartition('_')[2]}": count
        for name, count in value.items()
        if name.endswith(("_invalid", "_timeout"))
    }
    return {
        "references repeat a question; the last of each counts": value["repeated"],
        "questions have several predictions that differ; the last of each counts": value["several"],
        "predictions belong to none of these questions": value["unknown"],
        **troubles,
    }


def predictions_of(path: Path) -> Path:
    """Return a file of predictions: `path` itself, or the file of the scores artifact at `path`.

    Raises:
        MismatchError: The artifact is of another kind, or it has no predictions.
        InputError: The folder has no artifact.
    """
    if not path.is_dir():
        return path
    artifact = open_artifact(path)
    if artifact.kind != "scores" or not artifact.has("predictions.jsonl"):
        raise MismatchError(
            f"{artifact} has no predictions. Name the scores of a model that answers, or a file of predictions."
        )
    return artifact.file("predictions.jsonl")
