"""ORQA's split of a question set into train and dev, and NQ-open's limit of five answer tokens.

The text of a question alone decides whether it is a dev question, so the split is the same for every copy and order of
a data set.

Source: orqa/preprocessing/create_data_splits.py (split), convert_to_nq_open.py (limit).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from realmctl.errors import ConfigError
from realmctl.extras.split.farmhash import fingerprint64
from realmctl.questions.questions import Question, read_questions


def is_dev(question: str) -> bool:
    """Return whether ORQA's split puts a question into dev. One in ten is, by the fingerprint of its UTF-8 bytes."""
    return fingerprint64(question.encode()) % 100_000 % 10 == 0


def shortened(question: Question, max_answer_tokens: int) -> Question | None:
    """Return the question with its answers of at most `max_answer_tokens` words, or None if none is left.

    NQ-open counts tokens of the annotated page, which its release does not contain. So this counts words between
    spaces.

    Raises:
        ConfigError: the answers are regular expressions, whose words cannot be counted.
    """
    if question.is_regex:
        raise ConfigError(
            f"--max-answer-tokens: the answers of {question.question!r} are regular expressions, which have no "
            "tokens to count. Leave the option out."
        )
    answers = tuple(answer for answer in question.answers if len(answer.split()) <= max_answer_tokens)
    return replace(question, answers=answers) if answers else None


def split(
    sources: Sequence[Path],
    train: Path,
    dev: Path,
    *,
    max_answer_tokens: int | None = None,
    is_regex: bool | None = None,
    answer_field: str | None = None,
) -> dict[str, int]:
    """Write the questions of `sources` to `train` and `dev` as NQ-open's JSON lines with their ids, and return the counts.

    Both files appear, or are replaced, only when both are complete.

    Returns:
        `train` and `dev`; with `max_answer_tokens` also `dropped_answers` and `dropped_questions`.

    Raises:
        ConfigError: an output has the path of another output or of an input.
        InputError: what `read_questions` raises.
    """
    _require_different([*sources, train, dev])
    read = [read_questions(path, is_regex=is_regex, answer_field=answer_field) for path in sources]
    questions = [question for each in read for question in each]
    kept = questions
    if max_answer_tokens is not None:
        kept = [short for question in questions if (short := shortened(question, max_answer_tokens))]
    parts = {train: [q for q in kept if not is_dev(q.question)], dev: [q for q in kept if is_dev(q.question)]}
    _write_all(parts)
    counts = {"train": len(parts[train]), "dev": len(parts[dev])}
    if max_answer_tokens is None:
        return counts
    answers = sum(len(q.answers) for q in questions) - sum(len(q.answers) for q in kept)
    return {**counts, "dropped_answers": answers, "dropped_questions": len(questions) - len(kept)}


def _require_different(paths: Sequence[Path]) -> None:
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise ConfigError(f"{path} is named twice. Every input and output needs a path of its own.")
        seen.add(path.resolve())


def _write_all(parts: dict[Path, list[Question]]) -> None:
    """Write all files under temporary names, then rename them, so that no incomplete file appears."""
    partial = {path: path.with_name(f"{path.name}.{os.getpid()}.partial") for path in parts}
    ids = [question.id for questions in parts.values() for question in questions]
    numbers = {str(number) for number in range(1, len(ids) + 1)}  # questions without ids are numbered by their file
    with_ids = len({*ids}) == len(ids) and not {*ids} <= numbers
    with ExitStack() as leftovers:
        for path, questions in parts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            leftovers.callback(partial[path].unlink, missing_ok=True)
            with partial[path].open("w", encoding="utf-8") as file:
                _write(file, questions, with_ids)
        for path, written in partial.items():
            written.replace(path)


def _write(file: TextIO, questions: Iterable[Question], with_ids: bool) -> None:
    for question in questions:
        named = {"id": question.id} if with_ids else {}
        regex = {"is_regex": True} if question.is_regex else {}
        record = {**named, "question": question.question, "answer": list(question.answers), **regex}
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
    file.flush()
    os.fsync(file.fileno())


def split_text(value: dict[str, int]) -> str:
    """Format the counts for people."""
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in value.items())
