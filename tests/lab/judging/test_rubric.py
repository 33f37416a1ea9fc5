"""Answers of language models, and the grade that is read from them or is not."""

from __future__ import annotations

import pytest

from realmctl.lab.judging.rubric import prompt_of, verdict_in

READ = [
    ('{"reason": "It says so.", "grade": 3}', (3, "It says so.")),
    ('```json\n{"grade": 0, "reason": "Another\\n matter."}\n```', (0, "Another matter.")),
    ('<think>{"reason": "or", "grade": 1}</think>\n{"reason": "no {brace}", "grade": "2"}', (2, "no {brace}")),
    ('Here: {"reason": "a", "grade": 1} and again {"reason": "b", "grade": 1}', (1, "b")),
    ('{"a": {"reason": "within", "grade": 1}} {"reason": "x", "grade": 2.0}', (2, "x")),
]
NOT_READ = [
    "",
    "3",
    "Grade: 3",
    '{"reason": "", "grade": 4}',
    '{"reason": "", "grade": -1}',
    '{"reason": "", "grade": true}',
    '{"reason": "", "grade": 1.5}',
    '{"reason": "", "grade": null}',
    '{"reason": "", "grade": "three"}',
    '{"grade": 3}',
    '{"reason": ["x"], "grade": 3}',
    '{"reason": "cut',
    '{"reason": "one sentence", "grade": 0, 1, 2 or 3}',
    '{"reason": "a", "grade": 1} {"reason": "b", "grade": 2}',
    "<think> it never ends",
    "[" * 100_000 + "{" * 100_000,
    '{"reason": "x", "grade": ' + "9" * 5000 + "}",
]


@pytest.mark.parametrize(("answer", "verdict"), READ)
def test_a_grade_that_is_read(answer, verdict):
    assert verdict_in(answer) == verdict


@pytest.mark.parametrize("answer", NOT_READ)
def test_a_grade_that_is_not_guessed(answer):
    assert verdict_in(answer) is None


def test_the_prompt_has_both_texts_in_either_order():
    """Braces of a text are no places of the rubric."""
    plain, swapped = (prompt_of("who {second}?", "T {0}", "Ada {first}", each) for each in (False, True))
    assert "Query: who {second}?\n\nPassage: T {0}\nAda {first}" in plain
    assert "Passage: T {0}\nAda {first}\n\nQuery: who {second}?" in swapped
    assert sorted(plain.split("\n")) == sorted(swapped.split("\n"))
