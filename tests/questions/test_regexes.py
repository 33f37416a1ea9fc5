"""Hostile patterns cost a bounded time, and harmless ones mean what they mean to Python's `re`."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.questions.answers import has_answer
from realmctl.questions.questions import read_questions
from realmctl.questions.regexes import AnswerVerdict, find_spans, is_usable, match_any


def test_all_patterns_of_a_question_share_one_budget():
    verdict = match_any(["(a|aa)+$"] * 50, "a" * 3000 + "!", anywhere=True, budget_seconds=0.1)
    assert verdict is AnswerVerdict.TIMEOUT  # without the budget: years


def test_a_pattern_that_outran_the_budget_is_not_run_again():
    verdicts = {match_any(["(b|bb)+$"], "b" * 3000 + "!", anywhere=True) for _ in range(1000)}
    assert verdicts == {AnswerVerdict.TIMEOUT}  # otherwise it would take a thousand seconds, which no test has


@pytest.mark.parametrize(("budget", "again"), [(0.05, AnswerVerdict.MATCH), (0.6, AnswerVerdict.TIMEOUT)])
def test_a_pattern_is_given_up_after_half_a_second(budget, again):
    """With less, because another pattern used the budget up, it may be harmless. No other test has these patterns, which a process remembers."""
    pattern = f"(d|dd)+${'' if budget < 0.5 else '(?#)'}"
    assert match_any([pattern], "d" * 3000 + "!", anywhere=True, budget_seconds=budget) is AnswerVerdict.TIMEOUT
    assert match_any([pattern], "d", anywhere=True, budget_seconds=60) is again


def test_a_match_before_the_hostile_pattern_counts():
    assert match_any(["a", "(a|aa)+$"], "a" * 3000 + "!", anywhere=True, budget_seconds=0.1) is AnswerVerdict.MATCH


def test_a_spent_budget_is_a_timeout():
    assert match_any(["a"], "a", anywhere=True, budget_seconds=0) is AnswerVerdict.TIMEOUT


@pytest.mark.parametrize(
    ("pattern", "usable"),
    [
        ("a" * 1000, True),
        ("a" * 1001, False),
        ("a{10000}", True),
        ("a{10001}", False),
        ("a{10001,}", False),
        ("a{,10001}", False),
        ("(a{100}){100}", True),
        ("(a{100}){101}", False),
        ("(a{0,0}b{100}){101}", False),
    ],
)
def test_long_patterns_and_those_that_repeat_more_than_a_limit_are_not_run(pattern, usable):
    assert is_usable(pattern) is usable
    assert (match_any([pattern], "", anywhere=True) is AnswerVerdict.INVALID) is not usable


def test_text_is_looked_at_up_to_a_cap():
    assert match_any(["b"], "a" * 19_999 + "b", anywhere=True) is AnswerVerdict.MATCH
    assert match_any(["b"], "a" * 20_000 + "b", anywhere=True) is AnswerVerdict.NO_MATCH


@pytest.mark.parametrize("pattern", ["{", "a{,2}b", "a{2}{e}", "x{1,}", r"\{e}", "[{]", "{1}", "a{b}"])
def test_braces_mean_what_they_mean_to_re(pattern):
    try:
        expected = re.search(pattern, "a{b} aab {e} aa{e}x") is not None
    except re.error:
        assert match_any([pattern], "a{b} aab {e} aa{e}x", anywhere=True) is AnswerVerdict.INVALID
    else:
        assert (match_any([pattern], "a{b} aab {e} aa{e}x", anywhere=True) is AnswerVerdict.MATCH) is expected


def test_curated_trec_patterns_mean_the_same_to_re(shared_data):
    """Every pattern of the data set on a sample of real answers, with both engines."""
    flags = re.IGNORECASE | re.UNICODE | re.MULTILINE
    questions = [
        q for part in ("train", "test") for q in read_questions(shared_data / f"CuratedTrec.curated-{part}.tsv")
    ]
    texts = [a for q in read_questions(shared_data / "NQ-open.dev.jsonl")[::30] for a in q.answers]
    for pattern in (answer for question in questions for answer in question.answers):
        compiled = re.compile(pattern, flags)
        for text in texts:
            assert (match_any([pattern], text, anywhere=True) is AnswerVerdict.MATCH) == bool(compiled.search(text)), (
                pattern
            )
            assert (match_any([pattern], text, anywhere=False) is AnswerVerdict.MATCH) == bool(compiled.match(text)), (
                pattern
            )


ATOMS = [
    "a",
    "i",
    "S",
    "\u00df",
    "\u00b2",
    "\u00e9",
    "e\u0301",
    "_",
    "{",
    ".",
    "^",
    "$",
    "a{2}",
    "a{,2}",
    "(a|b)",
    "(?=a)",
    "(?!a)",
    r"\w",
    r"\W",
    r"\s",
    r"\S",
    r"\b",
    r"\B",
    r"\d",
    r"\[",
    r"\\",
    "[[:a]",
    "[]a]",
    "[^]a]",
    "[a-z]",
    r"[\w-]",
    r"[^\s.]",
    r"[\]a]",
    r"[\W]",
    r"[^\W]",
    r"[^\W_]",
    r"[\S1]",
    r"[^\Sa]",
    r"[\W^a]",
    r"[^^\W]",
    r"[\W\S]",
    "\u0130",
    "[\u0130x]",
    "\\\u0131",
    "[\\\u0130x]",
    r"\N{LATIN SMALL LETTER A}",
    "(?a)",
    "(?a:b)",
]
CHARACTERS = "abAeiI\u0130\u0131\u017f\u212aS\u00df\u1e9e\u00b2\u00bd\u0301\u00e9\u00c9\u03c2\u03a3 \u00a0\x1c\u200d_-{[:]\n1\\\u24d0"


@given(
    st.lists(st.tuples(st.sampled_from(ATOMS), st.sampled_from(["", "", "*", "+", "?", "{1,2}", "*?"])), max_size=4),
    st.text(CHARACTERS, max_size=7),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_patterns_mean_what_they_mean_to_re(atoms, text, anywhere):
    pattern = "".join(atom + repeat for atom, repeat in atoms)
    try:
        compiled = re.compile(pattern, re.IGNORECASE | re.UNICODE | re.MULTILINE)
    except (re.error, ValueError):
        assert match_any([pattern], text, anywhere=anywhere) is AnswerVerdict.INVALID
    else:
        expected = (compiled.search if anywhere else compiled.match)(text) is not None
        assert (match_any([pattern], text, anywhere=anywhere) is AnswerVerdict.MATCH) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "by_regex", "by_re"),
    [
        (r"^\p{L}+$", "Lincoln", AnswerVerdict.MATCH, AnswerVerdict.INVALID),
        (r"^\w$", "\u00bd", AnswerVerdict.NO_MATCH, AnswerVerdict.MATCH),
        (r"^[\W]$", "\u00b2", AnswerVerdict.MATCH, AnswerVerdict.NO_MATCH),
        ("\u0130", "\u0131", AnswerVerdict.NO_MATCH, AnswerVerdict.MATCH),
        ("^\u0130$", "I", AnswerVerdict.NO_MATCH, AnswerVerdict.MATCH),
        ("^I$", "\u0130", AnswerVerdict.NO_MATCH, AnswerVerdict.MATCH),
        (r"^e\w$", "e\u0301", AnswerVerdict.MATCH, AnswerVerdict.NO_MATCH),
        ("a{99999999}", "a", AnswerVerdict.INVALID, AnswerVerdict.INVALID),
        ("(", "(", AnswerVerdict.INVALID, AnswerVerdict.INVALID),
    ],
)
def test_each_scorer_has_its_own_engine(pattern, text, by_regex, by_re):
    """DPR imports `regex`, ORQA imports `re`."""
    assert match_any([pattern], text, anywhere=True, engine="regex") is by_regex
    assert match_any([pattern], text, anywhere=True) is by_re
    assert has_answer(text, [pattern], "regex") is (by_regex is AnswerVerdict.MATCH)
    assert bool(find_spans([pattern], text)) is (by_regex is AnswerVerdict.MATCH)
