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
from realmctl.questions.scorers import NORMALISERS, Scorer, overlap
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


@pytest.mark.parametrize(
    ("scorer", "prediction", "answers", "f1"),
    [
        ("korquad", "서울은", ["서울"], 2 * 2 / 5),  # characters: 3 predicted, 2 of them right
        ("korquad", "1989년 2월", ["1989년 2월 15일"], 2 * 7 / (7 + 10)),
        ("korquad", "부산", ["서울", "부산시"], 2 * 2 / 5),  # the likest answer counts
        ("cmrc2018", "北京大学", ["北大"], 2 * 1 / 6),  # the longest run in common: 北 or 大
        ("cmrc2018", "在北京大学", ["北京"], 2 * 2 / 7),
        ("cmrc2018", "《ABC》大学", ["abc"], 2 * 1 / 4),  # abc, 大, 学
        ("squad", "the big house", ["a house"], 2 * 1 / 3),
        ("xquad", "la casa casa", ["casa"], 2 * 1 / 4),  # each word as often as in both
        ("mlqa-zh", "北京大学", ["北大"], 2 * 2 / 6),
        ("mlqa-de", "das alte Haus", ["Haus"], 2 * 1 / 3),
        ("squad", "", ["x"], 0.0),
        ("squad", "the", ["a"], 0.0),
        ("orqa", "x", [], 0.0),
    ],
)
def test_f1_as_the_published_scripts_count_it(scorer, prediction, answers, f1):
    assert overlap(prediction, answers, scorer) == pytest.approx(f1)


@pytest.mark.parametrize("scorer", NORMALISERS)
@given(one=TEXTS, two=TEXTS)
def test_f1_is_symmetric_and_whole_where_the_texts_are_equal(scorer, one, two):
    assert 0 <= overlap(one, [two], scorer) == overlap(two, [one], scorer) <= 1
    assert overlap(one, [two], scorer) <= overlap(one, [two, one], scorer) in (0.0, 1.0)
