"""Which texts hold an answer to a question: asked of thousands of blocks a question in training, of a hundred in evaluation."""

from __future__ import annotations

import re
import unicodedata

from realmctl.text.qa.answers import AnswerTest, answer_spans, has_answer
from realmctl.text.qa.questions import Question
from realmctl.text.qa.regexes import find_spans

ASCII_RUN = re.compile(r"[a-z0-9]+")


class AnswerSearch:
    """`text.answers.has_answer` for one question and many texts: `how` is for plain answers, expressions are searched for as such.

    Words are costly to compare, so the longest run of plain letters and digits of each answer is looked for first.
    """

    def __init__(self, question: Question, how: AnswerTest) -> None:
        self._how: AnswerTest = "regex" if question.is_regex else how
        self._answers = question.answers
        self._telling = [longest_run(answer) for answer in question.answers]

    def __call__(self, text: str) -> bool:
        if self._how != "tokens":
            return has_answer(text, self._answers, self._how)
        plain = folded(text)
        possible = [answer for answer, run in zip(self._answers, self._telling, strict=True) if run in plain]
        return bool(possible) and has_answer(text, possible, "tokens")

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the answers stand in `text`, as character offsets: plain ones as words, expressions as what they match."""
        return find_spans(self._answers, text) if self._how == "regex" else answer_spans(text, self._answers)


def folded(text: str) -> str:
    """NFD, then lower case: what runs of letters are looked for in."""
    return unicodedata.normalize("NFD", text).lower()


def longest_run(answer: str) -> str:
    """What a text must hold, side by side, to hold the answer as words."""
    return max(ASCII_RUN.findall(folded(answer)), key=len, default="")
