"""Runs of wordpieces, against a search at every place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from realmctl.tokens.token_search import occurrences


@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_occurrences_equal_a_plain_search(tokens: list[int], needle: list[int]) -> None:
    expected = [at for at in range(len(tokens) - len(needle) + 1) if tokens[at : at + len(needle)] == needle]
    assert occurrences(np.array(tokens, dtype=np.int64), np.array(needle, dtype=np.int64)).tolist() == expected
