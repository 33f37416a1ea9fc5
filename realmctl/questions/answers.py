"""Score one prediction, and find answers in a text.

Three published evaluations differ where accents, articles and punctuation occur, so each has its own scorer here:
SQuAD v1.1's evaluation script, ORQA (orqa/utils/eval_utils.py) and DPR (dpr/data/qa_validation.py).
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
import regex
from numpy.typing import NDArray

from realmctl.errors import ConfigError
from realmctl.questions.regexes import AnswerVerdict, match_any

Scorer = Literal["orqa", "squad", "dpr", "regex-match", "regex-search"]
AnswerTest = Literal["substring", "tokens", "regex"]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_DPR_ARTICLE = regex.compile(r"\b(?:a|an|the)\b")
_LETTER_WITH_MARKS = regex.compile(r"(?s:.)\p{M}*")
_DPR_TOKEN = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")


def normalise_squad(text: str) -> str:
    """Lower-case, remove ASCII punctuation and the articles a, an and the, and collapse spaces (SQuAD v1.1's script).

    Punctuation is removed before articles, so "a-bomb" becomes "abomb" and "the." becomes "".
    """
    return " ".join(_ARTICLE.sub(" ", _bare(text)).split())


def normalise_orqa(text: str) -> str:
    """Apply NFD, then `normalise_squad` (orqa/utils/eval_utils.py). Accents stay: "Beyoncé" differs from "Beyonce"."""
    return normalise_squad(unicodedata.normalize("NFD", text))


def normalise_dpr(text: str) -> str:
    """Normalise as SQuAD does, with the word boundaries of the `regex` package (dpr/data/qa_validation.py imports it
    as `re`).

    There a combining mark belongs to the letter before it, and ½ and ² are not letters: the "a" of "a²" is an article.
    DPR applies NFD in has_answer, not in exact match.
    """
    return " ".join(_DPR_ARTICLE.sub(" ", _bare(text)).split())


def _bare(text: str) -> str:
    return text.lower().translate(_NO_PUNCTUATION)


_NORMALISERS: dict[str, Callable[[str], str]] = {
    "orqa": normalise_orqa,
    "squad": normalise_squad,
    "dpr": normalise_dpr,
}


def exact_match(prediction: str, answers: Sequence[str], scorer: Scorer = "orqa") -> bool:
    """Return whether `prediction` equals one of `answers` under `scorer`: exact match (EM) of one question."""
    return judge(prediction, answers, scorer) is AnswerVerdict.MATCH


def judge(prediction: str, answers: Sequence[str], scorer: Scorer = "orqa") -> AnswerVerdict:
    """Return the verdict of `scorer` on a prediction, which includes whether a regular expression failed to run.

    Args:
        prediction: the predicted answer.
        answers: the right answers. Without answers no prediction is right.
        scorer: orqa, squad and dpr compare normalised texts. regex-match requires a match at the start, as ORQA scores
            CuratedTREC: "Lincoln" does not accept "Abraham Lincoln". regex-search requires a match anywhere, as the
            README of the data set specifies.

    Raises:
        ConfigError: an unknown scorer.
    """
    if scorer in _NORMALISERS:
        normalise = _NORMALISERS[scorer]
        right = normalise(prediction) in {normalise(answer) for answer in answers}
        return AnswerVerdict.MATCH if right else AnswerVerdict.NO_MATCH
    if scorer in ("regex-match", "regex-search"):
        return match_any(answers, prediction, anywhere=scorer == "regex-search")
    raise ConfigError(f"'{scorer}' is not a scorer. Use one of {', '.join(get_args(Scorer))}.")


def has_answer(text: str, answers: Sequence[str], how: AnswerTest = "substring") -> bool:
    """Return whether `text` contains one of `answers`. Empty answers are never found.

    Args:
        text: a block, for instance.
        answers: texts, or with "regex" regular expressions.
        how: "substring" compares raw and case-sensitive text, as ORQA supervises its retriever: "art" is in "party".
            "tokens" compares runs of lower-cased words after NFD, as DPR validates retrieval. "regex" searches anywhere
            after NFD with the `regex` package, as DPR does.

    Raises:
        ConfigError: an unknown `how`.
    """
    if how == "substring":
        return any(answer in text for answer in answers if answer)
    if how == "tokens":
        held = _dpr_tokens(text)
        return any(_contains(held, _dpr_tokens(answer)) for answer in answers)
    if how == "regex":
        patterns = (unicodedata.normalize("NFD", answer) for answer in answers if answer)
        return (
            match_any(patterns, unicodedata.normalize("NFD", text), anywhere=True, engine="regex")
            is AnswerVerdict.MATCH
        )
    raise ConfigError(f"'{how}' is not an answer test. Use one of {', '.join(get_args(AnswerTest))}.")


def answer_spans(text: str, answers: Iterable[str]) -> list[tuple[int, int]]:
    """Return where `text` contains one of `answers` as words: sorted character offsets (start, end), which may
    overlap.

    Words are those of `has_answer`'s tokens. The offsets count characters of `text` itself, not of its NFD.
    """
    decomposed, origin = _nfd_with_origin(text)
    tokens = list(_DPR_TOKEN.finditer(decomposed))
    held, found = [token[0].lower() for token in tokens], set()
    for wanted in map(_dpr_tokens, answers):
        for at in _places(held, wanted):
            last = tokens[at + len(wanted) - 1].end() - 1
            found.add((origin[tokens[at].start()][0], origin[last][1]))
    return sorted(found)


def _nfd_with_origin(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the NFD of `text`, and for each of its characters the (start, end) in `text` of the letter it comes from."""
    decomposed, origin = [], []
    for match in _LETTER_WITH_MARKS.finditer(text):
        piece = unicodedata.normalize("NFD", match[0])
        decomposed.append(piece)
        origin += [match.span()] * len(piece)
    return "".join(decomposed), origin


def _dpr_tokens(text: str) -> list[str]:
    """Return runs of letters, marks and digits, and each other visible character (DPR's SimpleTokenizer)."""
    return [token.lower() for token in _DPR_TOKEN.findall(unicodedata.normalize("NFD", text))]


def _contains(held: list[str], wanted: list[str]) -> bool:
    return next(_places(held, wanted), None) is not None


def _places(held: list[str], wanted: list[str]) -> Iterator[int]:
    width = len(wanted)
    if width:
        yield from (at for at in range(len(held) - width + 1) if held[at : at + width] == wanted)


def find_answer_tokens(
    block: Sequence[int] | NDArray[np.integer[Any]], answers: Iterable[Sequence[int]], max_width: int
) -> list[tuple[int, int]]:
    """Return where one of `answers` occurs in `block`, as sorted wordpiece positions (first, last), `last` inclusive.

    Sequences must be equal (orqa/models/orqa_model.py), so only whole wordpieces are found. Answers without a wordpiece
    or with more than `max_width` are never found. Occurrences may overlap.
    """
    ids = np.asarray(block)
    found: set[tuple[int, int]] = set()
    for answer in {tuple(map(int, answer)) for answer in answers}:
        width = len(answer)
        if 0 < width <= min(max_width, len(ids)):
            windows = np.lib.stride_tricks.sliding_window_view(ids, width)
            found.update((int(at), int(at) + width - 1) for at in np.flatnonzero((windows == answer).all(1)))
    return sorted(found)
