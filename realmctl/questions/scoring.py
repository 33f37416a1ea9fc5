"""Score predictions against the answers of questions by several scorers, and list those on which scorers disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from realmctl.errors import ConfigError
from realmctl.questions.answers import judge
from realmctl.questions.questions import Question
from realmctl.questions.regexes import AnswerVerdict
from realmctl.questions.scorers import COMPARED, NORMALISERS, REGEX_SCORERS, Scorer, overlap


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
    if f1 is not None and not any(question.answers):  # SQuAD 2: nothing is right where there is no answer
        f1 = float(verdicts[scorers[0]] is AnswerVerdict.MATCH)
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


def disagreements_text(entries: Sequence[Mapping[str, Any]]) -> str:
    """Format the questions on which scorers disagree, given as `ScoredPrediction.record`, for people."""
    lines = [f"{len(entries)} questions on which they disagree"]
    return "\n".join([*lines, *(_disagreement_text(entry) for entry in entries)])


def _disagreement_text(entry: Mapping[str, Any]) -> str:
    verdicts = ", ".join(f"{name} {verdict}" for name, verdict in entry["verdicts"].items())
    return f"{entry['question']!r}\n  {entry['prediction']!r} for {entry['answers']!r}: {verdicts}"
