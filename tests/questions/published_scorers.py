"""The published scorers' rules a second time, by other means than realmctl's: characters and words, no patterns.

The rules: ORQA's language/orqa/utils/eval_utils.py, SQuAD's evaluate-v1.1.py, DPR's dpr/data/qa_validation.py.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterator
from itertools import groupby

ARTICLES = ("a", "an", "the")


def right(scorer: str, prediction: str, answers: list[str]) -> bool:
    """Whether the published script counts the prediction."""
    return any(ONE[scorer](prediction, answer) for answer in answers)


def normalised(text: str, in_word: Callable[[str], bool]) -> list[str]:
    """What is left between blanks, of lower-cased text without ASCII punctuation and without articles.

    An article is a run of word characters, so it is told apart before blanks are.
    """
    kept = [char for char in text.lower() if char not in string.punctuation]
    return "".join(without_articles(kept, in_word)).split()


def without_articles(chars: list[str], in_word: Callable[[str], bool]) -> Iterator[str]:
    for is_word, run in groupby(chars, in_word):
        piece = "".join(run)
        yield " " if is_word and piece in ARTICLES else piece


def in_word_of_re(char: str) -> bool:
    """Python's documentation: whatever is alphanumeric by str.isalnum(), and the underscore."""
    return char.isalnum() or char == "_"


def in_word_of_regex(char: str) -> bool:
    """Unicode's annex 18: alphabetic, mark, decimal number, connector punctuation, join control."""
    category = unicodedata.category(char)
    circled_letter = category == "So" and ("\u24b6" <= char <= "\u24e9" or "\U0001f130" <= char <= "\U0001f189")
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or char in "\u200c\u200d" or circled_letter


def orqa(prediction: str, answer: str) -> bool:
    texts = (unicodedata.normalize("NFD", text) for text in (prediction, answer))
    return len({tuple(normalised(text, in_word_of_re)) for text in texts}) == 1


def squad(prediction: str, answer: str) -> bool:
    return normalised(prediction, in_word_of_re) == normalised(answer, in_word_of_re)


def dpr(prediction: str, answer: str) -> bool:
    return normalised(prediction, in_word_of_regex) == normalised(answer, in_word_of_regex)


def by_pattern(method: str) -> Callable[[str, str], bool]:
    """Python's own engine; ORQA stands at the start, the data set's README looks anywhere."""

    def run(prediction: str, answer: str) -> bool:
        try:
            pattern = re.compile(answer, re.IGNORECASE | re.UNICODE | re.MULTILINE)
        except (re.error, ValueError):
            return False
        return getattr(pattern, method)(prediction) is not None

    return run


ONE = {
    "orqa": orqa,
    "squad": squad,
    "dpr": dpr,
    "regex-match": by_pattern("match"),
    "regex-search": by_pattern("search"),
}
