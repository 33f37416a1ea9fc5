"""BlockTexts in a mapped file."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from realmctl.corpus.block_texts import BlockTexts


@given(st.lists(st.text()))
def test_what_goes_in_comes_out(texts):
    held = BlockTexts(iter(texts))
    assert [held[row] for row in range(len(held))] == texts
