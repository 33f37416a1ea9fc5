"""The test whether a text holds an answer to a question: on thousands of blocks per question in training, 100 in evaluation."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence

from realmctl.questions.answers import AnswerTest, answer_spans, has_answer, words_of
from realmctl.questions.questions import Question
from realmctl.questions.regexes import find_spans

ASCII_RUN = re.compile(r"[a-z0-9]+")


class AnswerSearch:
    """`has_answer` for one question and many texts.

    `how` applies to plain answers; regular expressions are matched as such. Comparing words is slow, so a text is first
    searched for the letters of each word of an answer.
    """

    def __init__(self, question: Question, how: AnswerTest) -> None:
        self._how: AnswerTest = "regex" if question.is_regex else how
        self._answers = question.answers
        self._words = [{folded(word) for word in words_of(answer)} for answer in question.answers]

    def __call__(self, text: str) -> bool:
        if self._how != "tokens":
            return has_answer(text, self._answers, self._how)
        plain = folded(text)
        possible = [
            answer
            for answer, words in zip(self._answers, self._words, strict=True)
            if all(word in plain for word in words)
        ]
        return bool(possible) and has_answer(text, possible, "tokens")

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Character offsets of the answers in `text`: plain answers as whole words, regex answers by matches."""
        return find_spans(self._answers, text) if self._how == "regex" else answer_spans(text, self._answers)


def folded(text: str) -> str:
    """The text in NFD and without case, in which the letters of words are searched."""
    return unicodedata.normalize("NFD", text).casefold()


def telling(answer: str) -> str:
    """The longest run of plain letters and digits in the answer, or else a character of it; empty for an answer without words.

    A text without it cannot hold the answer as words.
    """
    plain = folded(" ".join(words_of(answer)))
    return max(ASCII_RUN.findall(plain), key=len, default=plain[:1])


def answered_by(questions: Sequence[Question], texts: Iterable[str]) -> set[int]:
    """Numbers of the questions that some text answers, by the test of recall@k: as words, or as a regular expression.

    A text is compared with a question only if it contains what tells one of its answers. Reading stops at the text that answers the
    last open question.
    """
    searches = [AnswerSearch(question, "tokens") for question in questions]
    by_run: defaultdict[str, set[int]] = defaultdict(set)
    patterns = {number for number, question in enumerate(questions) if question.is_regex}
    for number, question in enumerate(questions):
        for answer in () if question.is_regex else question.answers:
            by_run[telling(answer)].add(number)
    found: set[int] = set()
    for text in texts:
        plain = folded(text)
        possible = patterns.union(*(by_run[run] for run in by_run.keys() & {*ASCII_RUN.findall(plain), *plain}))
        found.update(number for number in possible - found if searches[number](text))
        if len(found) == len(questions):
            break
    return found
