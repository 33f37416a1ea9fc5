"""Published scorers of exact match: what each leaves of a text before two texts are compared.

They differ where accents, articles and punctuation occur, so each is written down as its script says.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Literal

import regex

Scorer = Literal[
    "orqa",
    "squad",
    "dpr",
    "korquad",
    "cmrc2018",
    "xquad",
    "mlqa-ar",
    "mlqa-de",
    "mlqa-en",
    "mlqa-es",
    "mlqa-hi",
    "mlqa-vi",
    "mlqa-zh",
    "regex-match",
    "regex-search",
]
"""The name of a scorer. CMRC 2018's is DRCD's too."""
REGEX_SCORERS: tuple[Scorer, ...] = ("regex-match", "regex-search")
COMPARED: tuple[Scorer, ...] = ("orqa", "squad", "dpr")
"""The scorers of texts that are always applied. The others are, where they are named."""
Normaliser = Callable[[str], str]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_DPR_ARTICLE = regex.compile(r"\b(?:a|an|the)\b")
_KORQUAD_BLANKS = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))
_CMRC_MARKS = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_MLQA_ARTICLES = {
    "ar": re.compile("ال"),
    "de": re.compile(r"\b(?:ein(?:e[nmrs]?)?|der|die|das|den|dem|des)\b"),
    "en": _ARTICLE,
    "es": re.compile(r"\b(?:un|un[ao]s|una|el|l[ao]s|la)\b"),
    "vi": re.compile(r"\b(?:của|là|cái|chiếc|những)\b"),
}
_IDEOGRAPH = re.compile("([\u4e00-\u9fa5])")


def normalise_squad(text: str) -> str:
    """Lower-case, remove ASCII punctuation and the articles a, an and the, and collapse spaces (SQuAD v1.1's script).

    Punctuation is removed before articles, so "a-bomb" becomes "abomb" and "the." becomes "". XQuAD is scored by the same script.
    """
    return _spaced(_ARTICLE.sub(" ", _bare(text)))


def normalise_orqa(text: str) -> str:
    """Apply NFD, then `normalise_squad` (orqa/utils/eval_utils.py). Accents stay: "Beyoncé" differs from "Beyonce"."""
    return normalise_squad(unicodedata.normalize("NFD", text))


def normalise_dpr(text: str) -> str:
    """Normalise as SQuAD does, with the word boundaries of the `regex` package (dpr/data/qa_validation.py imports it
    as `re`).

    There a combining mark belongs to the letter before it, and ½ and ² are not letters: the "a" of "a²" is an article.
    DPR applies NFD in has_answer, not in exact match.
    """
    return _spaced(_DPR_ARTICLE.sub(" ", _bare(text)))


def normalise_korquad(text: str) -> str:
    """Put blanks for quotes, brackets and the marks of titles, lower-case, remove other ASCII punctuation, collapse blanks
    (KorQuAD 1.0, evaluate-korquad_v1.0.py). No article is removed, and no particle.
    """
    return _spaced(_bare(text.translate(_KORQUAD_BLANKS)))


def normalise_cmrc2018(text: str) -> str:
    """Lower-case, strip, and remove the script's own list of marks, among them full-width ones (cmrc2018_evaluate.py, for CMRC 2018
    and DRCD).

    Blanks inside stay, and so do marks that the list lacks, such as the full stop of ASCII and the ellipsis.
    """
    return text.lower().strip().translate(_CMRC_MARKS)


def normalise_mlqa(text: str, language: str) -> str:
    """Lower-case, remove Unicode's punctuation and the articles of a language, collapse blanks (mlqa_evaluation_v1.py).

    In Chinese each ideograph is a word, so blanks beside one do not count. In Arabic each "ال" is removed, also inside a word.
    """
    plain = "".join(
        char for char in text.lower() if unicodedata.category(char)[0] != "P" and char not in string.punctuation
    )
    if language in _MLQA_ARTICLES:
        plain = _MLQA_ARTICLES[language].sub(" ", plain)
    return _spaced(_IDEOGRAPH.sub(r" \1 ", plain) if language == "zh" else plain)


NORMALISERS: dict[str, Normaliser] = {
    "orqa": normalise_orqa,
    "squad": normalise_squad,
    "dpr": normalise_dpr,
    "korquad": normalise_korquad,
    "cmrc2018": normalise_cmrc2018,
    "xquad": normalise_squad,
    **{
        f"mlqa-{language}": partial(normalise_mlqa, language=language)
        for language in ["ar", "de", "en", "es", "hi", "vi", "zh"]
    },
}
"""What each scorer compares. Those of regular expressions are not among them."""


def overlap(prediction: str, answers: Sequence[str], scorer: Scorer) -> float:
    """Return F1 of a prediction and the likest of the answers, 0 to 1, as the published script of a scorer counts it.

    F1 is the harmonic mean of two shares: of what is predicted that stands in the answer, and of the answer that is predicted. Words are
    counted (SQuAD, XQuAD, MLQA), characters without blanks (KorQuAD), or the longest run in common of ideographs and words (CMRC 2018, whose
    script cuts words of other letters by NLTK, where here blanks do). An empty text has no F1 but 0. `scorer` is one of `NORMALISERS`.
    """
    found = _counted(prediction, scorer)
    return max((_f1(found, _counted(answer, scorer), scorer == "cmrc2018") for answer in answers), default=0.0)


def _counted(text: str, scorer: Scorer) -> list[str]:
    plain = NORMALISERS[scorer](text)
    if scorer == "korquad":
        return [*plain.replace(" ", "")]
    return (_IDEOGRAPH.sub(r" \1 ", plain) if scorer == "cmrc2018" else plain).split()


def _f1(found: list[str], right: list[str], in_a_row: bool) -> float:
    if in_a_row:
        same = SequenceMatcher(None, found, right, autojunk=False).find_longest_match().size
    else:
        same = (Counter(found) & Counter(right)).total()
    return 2 * same / (len(found) + len(right)) if same else 0.0


def _bare(text: str) -> str:
    return text.lower().translate(_NO_PUNCTUATION)


def _spaced(text: str) -> str:
    return " ".join(text.split())
