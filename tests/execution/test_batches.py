"""Rows in batches."""

from __future__ import annotations

import numpy as np
import pytest

from realmctl.execution.batches import batched, slices


@pytest.mark.parametrize("count", [0, 1, 6, 7])
@pytest.mark.parametrize("size", [0, 1, 3, 7, 100])
def test_batches_hold_all_rows_in_their_order(count: int, size: int) -> None:
    batches = batched([*range(count)], size)
    assert [row for batch in batches for row in batch] == [*range(count)]
    most = size or count
    assert all(len(batch) == most for batch in batches[:-1]) and all(0 < len(batch) <= most for batch in batches)
    assert [np.arange(count)[part].tolist() for part in slices(count, size)] == batches
