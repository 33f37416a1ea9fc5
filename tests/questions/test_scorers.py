"""Scorers of other languages: a table decided by reading the published scripts, and their rules a second time by other means.

The rules: KorQuAD's evaluate-korquad_v1.0.py, CMRC 2018's cmrc2018_evaluate.py, MLQA's mlqa_evaluation_v1.py.
"""

from __future__ import annotations

import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.errors import ConfigError
from realmctl.questions.answers import exact_match
from realmctl.questions.questions import Question
from realmctl.questions.scorers import NORMALISERS, Scorer
from realmctl.questions.scoring import fitting_scorers

CASES: list[tuple[Scorer, str, str, bool]] = [
    ("korquad", "《죄와 벌》", "죄와 벌", True),
    ("korquad", "'서울'", "서울", True),
    ("korquad", "서울(수도)", "서울 수도", True),  # a bracket becomes a blank
    ("korquad", "1,000명", "1000명", True),  # other ASCII punctuation becomes nothing
    ("korquad", "서울은", "서울", False),  # particles stay
    ("korquad", "a dog", "dog", False),  # articles stay
    ("korquad", "서울。", "서울", False),
    ("cmrc2018", "北京。", "北京", True),
    ("cmrc2018", "《北京》（市）", "北京市", True),
    ("cmrc2018", "ABC大学", "abc大学", True),
    ("cmrc2018", "北 京", "北京", False),
    ("cmrc2018", "3.5", "35", False),  # the list has no ASCII full stop
    ("cmrc2018", "北京…", "北京", False),  # the list has two ellipses as one entry, which no character is
    ("xquad", "the Beatles", "Beatles!", True),
    ("mlqa-en", "the “Beatles”", "Beatles", True),
    ("mlqa-de", "Das Haus", "haus", True),
    ("mlqa-de", "Dasein", "sein", False),
    ("mlqa-es", "¿El perro?", "perro", True),
    ("mlqa-es", "los unos", "", True),
    ("mlqa-vi", "những chiếc xe", "xe", True),
    ("mlqa-vi", "the xe", "xe", False),
    ("mlqa-ar", "الكتاب", "كتاب", True),
    ("mlqa-ar", "مالك", "م ك", True),  # also inside a word, as the script does
    ("mlqa-hi", "भारत।", "भारत", True),
    ("mlqa-zh", "北 京 大学", "北京大学", True),
    ("mlqa-zh", "ab cd", "abcd", False),
]


@pytest.mark.parametrize(("scorer", "prediction", "answer", "right"), CASES)
def test_the_table(scorer, prediction, answer, right):
    assert exact_match(prediction, [answer], scorer) is right


def blanks(text: str) -> str:
    return " ".join(text.split())


def korquad(text: str) -> str:
    spaced = [" " if char in "'\"《》<>〈〉()‘’" else char.lower() for char in text]
    return blanks("".join(char for char in spaced if char not in string.punctuation))


def cmrc(text: str) -> str:
    marks = {*"-:_*^/\\~`+=", *"，。：？！“”；’《》·、「」（）－～『』"}
    return "".join(char for char in text.lower().strip() if char not in marks)


def mlqa(text: str, articles: set[str], by_character: bool = False) -> str:
    kept = [c for c in text.lower() if not unicodedata.category(c).startswith("P") and c not in string.punctuation]
    words, word = [], ""
    for char in [*kept, " "]:  # a word is a run of what `re` takes for letters
        if char.isalnum() or char == "_":
            word += char
            continue
        words += [" " if word in articles else word, char]
        word = ""
    plain = "".join(words)
    return blanks("".join(f" {c} " if "\u4e00" <= c <= "\u9fa5" else c for c in plain) if by_character else plain)


RULES = {
    "korquad": korquad,
    "cmrc2018": cmrc,
    "mlqa-en": lambda text: mlqa(text, {"a", "an", "the"}),
    "mlqa-de": lambda text: mlqa(
        text, {*["ein", "eine", "einen", "einem", "eines", "einer", "der", "die", "das", "den", "dem", "des"]}
    ),
    "mlqa-es": lambda text: mlqa(text, {*["un", "una", "unos", "unas", "el", "la", "los", "las"]}),
    "mlqa-vi": lambda text: mlqa(text, {*["của", "là", "cái", "chiếc", "những"]}),
    "mlqa-hi": lambda text: mlqa(text, set()),
    "mlqa-zh": lambda text: mlqa(text, set(), by_character=True),
    "mlqa-ar": lambda text: blanks(" ".join(mlqa(text, set()).replace("ال", " ").split())),
}
WORDS = [
    "a",
    "the",
    "der",
    "eines",
    "einen",
    "la",
    "unos",
    "của",
    "chiếc",
    "ال",
    "الكتاب",
    "서울은",
    "首都",
    "北京大学",
    "Straße",
    "é",
    "½",
    "İ",
]
TEXTS = st.lists(st.sampled_from([*WORDS, *" \n\u3000'\"《》〈〉()‘’，。…·「」-:_~+=.|¿।؟"]) | st.text(max_size=3)).map(
    "".join
)


@pytest.mark.parametrize("scorer", RULES)
@given(text=TEXTS)
def test_the_rules_by_other_means(scorer, text):
    assert NORMALISERS[scorer](text) == RULES[scorer](text)


def test_a_named_scorer_comes_first_and_patterns_refuse_it():
    questions = [Question("1", "?", ("서울",))]
    assert fitting_scorers(questions, "auto") == ["orqa", "squad", "dpr"]
    assert fitting_scorers(questions, "korquad") == ["korquad", "orqa", "squad", "dpr"]
    assert fitting_scorers(questions, "dpr") == ["dpr", "orqa", "squad"]
    with pytest.raises(ConfigError, match="korquad"):
        fitting_scorers([Question("1", "?", ("서울",), is_regex=True)], "korquad")
