"""Is this prediction right, does this block hold an answer, and where: the questions that evaluation and
training ask.

Three bodies of work score open-domain QA in three ways, which differ exactly where accents, articles and
punctuation are; each is here under its own name, so that a number can be compared with the one it stands
beside.
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
from realmctl.text.qa.regexes import Verdict, match_any

Scorer = Literal["orqa", "squad", "dpr", "regex-match", "regex-search"]
AnswerTest = Literal["substring", "tokens", "regex"]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_DPR_ARTICLE = regex.compile(r"\b(?:a|an|the)\b")
_LETTER_WITH_MARKS = regex.compile(r"(?s:.)\p{M}*")
_DPR_TOKEN = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")


def normalise_squad(text: str) -> str:
    """Lower case, no ASCII punctuation, no a, an or the, spaces collapsed: SQuAD v1.1's evaluation script.

    Punctuation goes before the articles do, so "a-bomb" becomes "abomb" and "the." becomes nothing.
    """
    return " ".join(_ARTICLE.sub(" ", _bare(text)).split())


def normalise_orqa(text: str) -> str:
    """NFD, then as SQuAD (orqa/utils/eval_utils.py). Accents stay: "Beyoncé" is not "Beyonce"."""
    return normalise_squad(unicodedata.normalize("NFD", text))


def normalise_dpr(text: str) -> str:
    """As SQuAD, but words end where the `regex` package says (dpr/data/qa_validation.py imports it as `re`).

    There a combining mark belongs to the letter before it, and ½ or ² to no word: in "a²" the a is an article.
    DPR's NFD is for has_answer, not for exact match.
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
    """Whether `prediction` is right by any of `answers`: exact match (EM) of one question."""
    return judge(prediction, answers, scorer) is Verdict.MATCH


def judge(prediction: str, answers: Sequence[str], scorer: Scorer = "orqa") -> Verdict:
    """Exact match, with the reason where a regular expression could not be run.

    orqa, squad, dpr: equality after that normaliser. regex-match: a pattern matches at the start of the
    prediction, as ORQA scores CuratedTREC (so "Lincoln" does not accept "Abraham Lincoln"); regex-search:
    anywhere in it, as the data set's README says. Without answers nothing is right. Raises ConfigError for an
    unknown scorer.
    """
    if scorer in _NORMALISERS:
        normalise = _NORMALISERS[scorer]
        right = normalise(prediction) in {normalise(answer) for answer in answers}
        return Verdict.MATCH if right else Verdict.NO_MATCH
    if scorer in ("regex-match", "regex-search"):
        return match_any(answers, prediction, anywhere=scorer == "regex-search")
    raise ConfigError(f"'{scorer}' is no scorer. Use one of {', '.join(get_args(Scorer))}.")


def has_answer(text: str, answers: Sequence[str], how: AnswerTest = "substring") -> bool:
    """Whether `text` holds one of `answers`; empty answers are in nothing.

    substring: raw and case-sensitive, as ORQA supervises its retriever ("art" is in "party"). tokens: the
    same run of lower-cased words after NFD, as DPR validates retrieval. regex: a pattern found anywhere after
    NFD, DPR's way too. Raises ConfigError for an unknown `how`.
    """
    if how == "substring":
        return any(answer in text for answer in answers if answer)
    if how == "tokens":
        held = _dpr_tokens(text)
        return any(_contains(held, _dpr_tokens(answer)) for answer in answers)
    if how == "regex":
        patterns = (unicodedata.normalize("NFD", answer) for answer in answers if answer)
        return match_any(patterns, unicodedata.normalize("NFD", text), anywhere=True) is Verdict.MATCH
    raise ConfigError(f"'{how}' is no answer test. Use one of {', '.join(get_args(AnswerTest))}.")


def answer_spans(text: str, answers: Iterable[str]) -> list[tuple[int, int]]:
    """Where `text` holds one of `answers` as words (`has_answer`'s tokens): sorted character offsets (start, end).

    Offsets are of the text as it stands, not of its NFD. Occurrences may overlap.
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
    """NFD, and for each character of it the (start, end) in `text` of the letter with its marks that it comes of."""
    decomposed, origin = [], []
    for match in _LETTER_WITH_MARKS.finditer(text):
        piece = unicodedata.normalize("NFD", match[0])
        decomposed.append(piece)
        origin += [match.span()] * len(piece)
    return "".join(decomposed), origin


def _dpr_tokens(text: str) -> list[str]:
    """Runs of letters, marks and digits, and other visible characters one by one: DPR's SimpleTokenizer."""
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
    """Where one of `answers` stands in `block`, both wordpiece ids: sorted (first, last), last INCLUSIVE.

    Exact equality of the sequences (orqa/models/orqa_model.py), so whole wordpieces only. Answers of no
    wordpiece or of more than `max_width` are never found; occurrences may overlap.
    """
    ids = np.asarray(block)
    found: set[tuple[int, int]] = set()
    for answer in {tuple(map(int, answer)) for answer in answers}:
        width = len(answer)
        if 0 < width <= min(max_width, len(ids)):
            windows = np.lib.stride_tricks.sliding_window_view(ids, width)
            found.update((int(at), int(at) + width - 1) for at in np.flatnonzero((windows == answer).all(1)))
    return sorted(found)
