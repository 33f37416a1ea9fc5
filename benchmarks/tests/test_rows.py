"""The work of each row of `make bench` that trains or embeds runs at its small size: an interface that changed breaks it here, and not at the next measurement."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parents[1]))

from load import all_rows

TAUGHT = {row.name: row for _, row in all_rows() if {side.precision for side in row.ours} == {"float32", "bfloat16"}}


@pytest.mark.slow
@pytest.mark.parametrize("name", TAUGHT)
def test_our_sides_agree_in_both_precisions(tmp_path, name):
    row = TAUGHT[name]
    torch.set_num_threads(1)
    row.prepare(tmp_path, True)
    exact, rounded = (side.start(tmp_path)() for side in row.ours)
    assert row.agree(rounded, exact)


def test_sides_of_one_precision_are_compared():
    assert len(TAUGHT) >= 12
    for row in TAUGHT.values():
        for mine in row.ours:
            assert {peer.precision for peer in row.peers if mine.beside(peer)} == {mine.precision}, row.name
