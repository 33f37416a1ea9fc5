"""Read questions with their answers from the file of a data set.

The format is detected from the content, not from the name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from realmctl.errors import InputError
from realmctl.log import say, warn
from realmctl.questions.question_formats import ParsedQuestion, parse_questions
from realmctl.questions.regexes import looks_like_regex

MAX_SUSPECT_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its right answers. With `is_regex` the answers are regular expressions.

    `provenance` are the ids of the documents that tell the answer, where the file names them.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    is_regex: bool = False
    provenance: tuple[str, ...] = ()


def read_questions(path: Path, *, is_regex: bool | None = None, answer_field: str | None = None) -> list[Question]:
    """Return the questions of a file in its order, without repeated questions and questions without answers.

    The layouts are those of `question_formats`, plain or compressed. The number of dropped questions goes to stderr.

    Args:
        path: the file.
        is_regex: whether answers are regular expressions. None follows the format.
        answer_field: name of the field or column of answers, for instance for EfficientQA.

    Raises:
        InputError: a record is malformed, one id has two different questions, the file has no questions, or answers
            look like regular expressions and neither `is_regex` nor the format declares them (DrQA's CuratedTREC).
    """
    name, found = parse_questions(path, answer_field)
    dropped: Counter[str] = Counter()
    questions = list(_checked(path, found, is_regex, dropped).values())
    if not questions:
        why = ", ".join(f"{count} {reason}" for reason, count in dropped.items()) or "it holds no record"
        raise InputError(
            f"{path}: no question has answers ({why}; read as {name}). "
            "Is this the right file, and the right field of answers?"
        )
    if is_regex is None:
        require_declared_patterns(path, questions)
    say(f"{path}: {len(questions)} questions, read as {name}")
    for reason, count in dropped.items():
        warn(f"{path}: {count} questions dropped: {reason}")
    return questions


def require_declared_patterns(path: Path, questions: Sequence[Question]) -> None:
    """Raise InputError if many answers look like regular expressions and the format does not say that they are."""
    suspects = [
        question for question in questions if not question.is_regex and any(map(looks_like_regex, question.answers))
    ]
    if len(suspects) > MAX_SUSPECT_SHARE * len(questions):
        raise InputError(
            f"{path}: the answers of {len(suspects)} of {len(questions)} questions look like regular expressions, such "
            f"as {suspects[0].answers[0][:60]!r}, and the file does not say whether they are. Say --regex-answers or "
            "--no-regex-answers."
        )


def _checked(
    path: Path, found: Iterable[ParsedQuestion], is_regex: bool | None, dropped: Counter[str]
) -> dict[str, Question]:
    questions: dict[str, Question] = {}
    for number, item in enumerate(found, start=1):
        answers = tuple(dict.fromkeys(answer for answer in item.answers if answer.strip()))
        if not answers:
            dropped["without an answer"] += 1
            continue
        _require_text(path, item)
        regular = item.is_regex if is_regex is None else is_regex
        question = Question(item.id or str(number), item.question, answers, regular, item.provenance)
        if questions.setdefault(question.id, question) is question:
            continue
        if questions[question.id] != question:
            raise InputError(
                f"{path}:{item.place}: an earlier question has the same id {question.id!r}. "
                "Give every question an id of its own, or none at all."
            )
        dropped["repeated"] += 1
    return questions


def _require_text(path: Path, item: ParsedQuestion) -> None:
    """Raise InputError for half of a surrogate pair, which JSON allows and UTF-8 does not."""
    try:
        "".join((item.id, item.question, *item.answers)).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{path}:{item.place}: not text ({error.reason}). Correct or remove it.") from None
