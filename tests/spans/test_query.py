"""Queries: what is hidden can be put back, what is cut away is not asked for, and all survives an exchange."""

from __future__ import annotations

import numpy as np

from realmctl.spans.query import Query, from_numbers, hide, hide_answer, to_numbers

MASK = 4


def as_lists(query: Query) -> list[object]:
    arrays = (query.tokens, query.places, query.targets)
    assert all(array.dtype == np.int64 for array in arrays)
    return [*(array.tolist() for array in arrays), query.sentence, query.beside and as_lists(query.beside)]


def test_a_place_given_twice_is_hidden_once_in_the_order_of_the_places():
    query = hide(np.array([7, 8, 9], dtype=np.uint16), [2, 0, 2], MASK)
    assert as_lists(query) == [[MASK, 8, MASK], [2, 0], [9, 7], -1, None]


def test_what_is_cut_away_is_not_asked_for():
    tokens = np.arange(10, 30)
    query = hide(tokens, range(20), MASK, beside=hide(tokens, [0, 5, 19], MASK)).cut(6, 3)
    assert as_lists(query) == [[MASK] * 6, [*range(6)], [*range(10, 16)], -1, [[MASK, 11, 12], [0], [10], -1, None]]
    assert query.hidden == 7


def test_an_answer_stands_behind_its_question_which_is_cut():
    query = hide_answer(np.array([11, 12, 13, 14]), [21, 22], MASK, room=5)
    assert as_lists(query) == [[11, 12, 13, MASK, MASK], [3, 4], [21, 22], -1, None]


def test_queries_survive_the_exchange():
    beside = hide(np.array([2, 3]), [1], MASK)
    one = Query(np.array([7, MASK, 9]), np.array([1]), np.array([5]), sentence=3)
    two = hide(np.array([1]), [0], MASK, beside=beside)
    empty = hide(np.empty(0, np.int64), [], MASK, beside=hide(np.empty(0, np.int64), [], MASK))
    sent = [one, two, empty, one]
    assert [*map(as_lists, from_numbers(to_numbers(sent)))] == [*map(as_lists, sent)]
    assert from_numbers(to_numbers([])) == []


def test_behind_a_prefix_the_hidden_places_move():
    query = hide(np.array([11, 12, 13]), [0, 2], MASK).after((7, 8))
    assert as_lists(query) == [[7, 8, MASK, 12, MASK], [2, 4], [11, 13], -1, None]
