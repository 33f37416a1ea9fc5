"""Score a file of predictions against a file of questions, without artifacts and models.

Questions are identified by their text, as by ORQA's evaluator: of several references or predictions with one text, the last counts.
Where predictions name ids, references with one text are told apart by them; SQuAD's predictions name ids alone. A question
without a prediction is wrong. A prediction for an unknown question is ignored.

Sources: orqa/utils/eval_utils.py, evaluate_predictions; SQuAD's evaluate-v1.1.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from realmctl.errors import ConfigError, InputError
from realmctl.inputs.rows import is_number, json_lines, parse_json
from realmctl.inputs.streams import head, whole_text
from realmctl.questions.answers import judge
from realmctl.questions.questions import (
    MAX_DOCUMENT_BYTES,
    Question,
    identity_of,
    parse_questions,
    require_declared_patterns,
)
from realmctl.questions.regexes import AnswerVerdict
from realmctl.questions.scorers import COMPARED, NORMALISERS, REGEX_SCORERS, Scorer, overlap

NAMED = re.compile(rb'"(question|prediction)"\s*:')
"""What JSON lines of predictions name, and SQuAD's predictions do not."""
FORMS = 'Write JSON lines {"question": ..., "prediction": ...}, or as for SQuAD\'s script one object {"id of a question": "prediction", ...}.'


@dataclass(frozen=True, slots=True)
class ScoredPrediction:
    """A question, its prediction (None if there is none), the verdict of each scorer, and F1 by the main scorer (None for patterns)."""

    question: Question
    prediction: str | None
    verdicts: dict[Scorer, AnswerVerdict]
    f1: float | None

    @property
    def disagrees(self) -> bool:
        """Whether one scorer accepts the prediction and another does not."""
        return len({verdict is AnswerVerdict.MATCH for verdict in self.verdicts.values()}) > 1

    def record(self) -> dict[str, Any]:
        """Return a JSON object: question, prediction, answers, and verdicts by scorer."""
        verdicts = {name: str(verdict) for name, verdict in self.verdicts.items()}
        answers = list(self.question.answers)
        return {
            "question": self.question.question,
            "prediction": self.prediction,
            "answers": answers,
            "verdicts": verdicts,
        }


def judged(question: Question, prediction: str | None, scorers: Sequence[Scorer]) -> ScoredPrediction:
    """Score one question with each of `scorers`, the main one first. Without a prediction every verdict is "no match"."""
    f1 = None if scorers[0] in REGEX_SCORERS else overlap(prediction or "", question.answers, scorers[0])
    if prediction is None:
        return ScoredPrediction(question, None, dict.fromkeys(scorers, AnswerVerdict.NO_MATCH), f1)
    verdicts = {name: judge(prediction, question.answers, name) for name in scorers}
    return ScoredPrediction(question, prediction, verdicts, f1)


def fitting_scorers(questions: Sequence[Question], wanted: Scorer | Literal["auto"]) -> list[Scorer]:
    """Return the scorers to apply to these answers, the main one first: `wanted`, and those that are always compared.

    Raises ConfigError if `wanted` does not suit the answers.
    """
    regex = any(question.is_regex for question in questions)
    compared = REGEX_SCORERS if regex else COMPARED
    if wanted == "auto":
        return list(compared)
    if (wanted in REGEX_SCORERS) != regex:
        what = "are regular expressions" if regex else "are not regular expressions"
        fitting = REGEX_SCORERS if regex else NORMALISERS
        raise ConfigError(
            f"--scorer {wanted}: the answers of this file {what}. Use {' or '.join(fitting)}, or --regex-answers/--no-regex-answers."
        )
    return [wanted, *(name for name in compared if name != wanted)]


def score(
    predictions: Path,
    references: Path,
    *,
    scorer: Scorer | Literal["auto"] = "auto",
    is_regex: bool | None = None,
    answer_field: str | None = None,
) -> tuple[dict[str, Any], list[ScoredPrediction]]:
    """Return the scores, and each question with its verdicts in the order of `references`.

    The scores are `questions`, `missing` predictions, `repeated` references, questions with `several` predictions that differ, and `unknown` predicted questions; `em`,
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
    counts = {
        "questions": len(questions),
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
    _, found = parse_questions(path, answer_field)
    questions: dict[tuple[str, str], Question] = {}
    records = 0
    for records, (where, question) in enumerate(found, start=1):
        if not question.answers:
            raise InputError(
                f"{where}: the list of answers is empty, so no prediction can be scored. "
                "Correct the record or take it out."
            )
        regular = question.is_regex if is_regex is None else is_regex
        name = question.id or str(records)
        questions[question.question, name if by_id else ""] = replace(question, id=name, is_regex=regular)
    if is_regex is None:
        require_declared_patterns(path, list(questions.values()))
    if not questions:
        raise InputError(f"{path} holds no question, but references are expected.")
    return list(questions.values()), records


def _predictions(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (question, id, prediction) of each line of JSON lines, or of SQuAD's object {id: prediction}; what is not named is empty."""
    start = head(path).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"{") and not NAMED.search(start):
        yield from _squad_predictions(path)
        return
    for where, _, record in json_lines(path):
        question, prediction = record.get("question"), _text_of(record.get("prediction"))
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


def disagreements_text(entries: Sequence[Mapping[str, Any]]) -> str:
    """Format the questions on which scorers disagree, given as `ScoredPrediction.record`, for people."""
    lines = [f"{len(entries)} questions on which they disagree"]
    return "\n".join([*lines, *(_disagreement_text(entry) for entry in entries)])


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


def _disagreement_text(entry: Mapping[str, Any]) -> str:
    verdicts = ", ".join(f"{name} {verdict}" for name, verdict in entry["verdicts"].items())
    return f"{entry['question']!r}\n  {entry['prediction']!r} for {entry['answers']!r}: {verdicts}"
