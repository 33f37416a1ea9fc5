"""The questions that have an answer anywhere in a corpus, found in one pass over the texts.

A text is compared with a question only if it contains the longest run of letters and digits of one of its answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from realmctl.questions.answer_search import ASCII_RUN, AnswerSearch, folded, longest_run
from realmctl.questions.questions import Question


def answered_by(questions: Sequence[Question], texts: Iterable[str]) -> set[int]:
    """Numbers of the questions that some text answers, by the test of recall@k: as words, or as a regular expression.

    Reading stops at the text that answers the last open question.
    """
    searches = [AnswerSearch(question, "tokens") for question in questions]
    by_run, anywhere = _by_run(questions)
    found: set[int] = set()
    for text in texts:
        if len(found) == len(questions):
            break
        possible = anywhere.union(*(by_run[run] for run in by_run.keys() & set(ASCII_RUN.findall(folded(text)))))
        found.update(number for number in possible - found if searches[number](text))
    return found


def _by_run(questions: Sequence[Question]) -> tuple[dict[str, set[int]], set[int]]:
    """{run of letters: questions with an answer that holds it}, and the questions that are compared with every text."""
    by_run: defaultdict[str, set[int]] = defaultdict(set)
    anywhere = {number for number, question in enumerate(questions) if question.is_regex}
    for number, question in enumerate(questions):
        for answer in () if question.is_regex else question.answers:
            run = longest_run(answer)
            (by_run[run] if run else anywhere).add(number)
    return dict(by_run), anywhere
