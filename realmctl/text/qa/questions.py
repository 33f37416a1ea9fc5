"""Questions and their answers, from whatever file a data set comes in, told by content and never by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from realmctl.errors import InputError
from realmctl.log import say, warn
from realmctl.text.qa.question_formats import Found, detect
from realmctl.text.qa.regexes import looks_like_regex

MAX_SUSPECT_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Question:
    """A question and every answer that counts as right; with `is_regex`, answers are regular expressions."""

    id: str
    question: str
    answers: tuple[str, ...]
    is_regex: bool = False


def read_questions(path: Path, *, is_regex: bool | None = None, answer_field: str | None = None) -> list[Question]:
    """The questions of a file, in its order. Plain, gzip, bzip2 or zstd.

    Formats: NQ-open and its kin (JSON lines), EfficientQA (its `answer_field` named), WebQuestions (brmson,
    SEMPRE or DrQA), CuratedTREC (brmson TSV or DrQA), SQuAD 1.1 and 2.0, DPR's qas.csv, TriviaQA. `is_regex`:
    whether answers are regular expressions; None means what the format says, which DrQA's CuratedTREC cannot
    (it looks like NQ-open).

    Questions without answers and repeated ones are dropped, and said so on stderr. Raises InputError naming
    file and line for a malformed record, for one id with two different questions, and for a file without a
    question.
    """
    name, found = detect(path, answer_field)
    dropped: Counter[str] = Counter()
    questions = list(_checked(path, found, is_regex, dropped).values())
    if not questions:
        why = ", ".join(f"{count} {reason}" for reason, count in dropped.items()) or "it holds no record"
        raise InputError(
            f"{path}: no question with answers in it ({why}; read as {name}). "
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


def _checked(path: Path, found: Iterable[Found], is_regex: bool | None, dropped: Counter[str]) -> dict[str, Question]:
    questions: dict[str, Question] = {}
    for number, item in enumerate(found, start=1):
        answers = tuple(dict.fromkeys(answer for answer in item.answers if answer.strip()))
        if not answers:
            dropped["without an answer"] += 1
            continue
        _require_text(path, item)
        regular = item.is_regex if is_regex is None else is_regex
        question = Question(item.id or str(number), item.question, answers, regular)
        if questions.setdefault(question.id, question) is question:
            continue
        if questions[question.id] != question:
            raise InputError(
                f"{path}:{item.place}: the id {question.id!r} stands for another question earlier in it. "
                "Give every question an id of its own, or none at all."
            )
        dropped["repeated"] += 1
    return questions


def _require_text(path: Path, item: Found) -> None:
    """Half of a surrogate pair is legal in JSON and can be written nowhere."""
    try:
        "".join((item.id, item.question, *item.answers)).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{path}:{item.place}: not text ({error.reason}). Correct it or take it out.") from None
