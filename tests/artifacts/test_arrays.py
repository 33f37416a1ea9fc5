"""Arrays that grow by rows are read back whole, for every length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.artifacts.arrays import ArrayAppender, evenly_spaced


@given(st.lists(st.lists(st.integers(0, 255), max_size=5), max_size=8))
def test_an_array_grows_by_rows(tmp_path_factory, pieces):
    path = tmp_path_factory.mktemp("array") / "a.npy"
    array = ArrayAppender(path, np.uint8)
    for piece in pieces:
        array.append(piece)
    array.close()
    read = np.load(path)
    assert read.dtype == np.uint8 and read.tolist() == [value for piece in pieces for value in piece]


def test_rows_are_written_while_it_grows(tmp_path, monkeypatch):
    monkeypatch.setattr("realmctl.artifacts.arrays.PENDING_BYTES", 8)
    array = ArrayAppender(tmp_path / "a.npy", np.uint8)
    for number in range(20):
        array.append([number] * 3)
        assert len(array._pending) < 8
    array.close()
    assert np.load(tmp_path / "a.npy").tolist() == [number for number in range(20) for _ in range(3)]


@pytest.mark.parametrize("rows", [0, 1, 12_345])
def test_an_array_of_columns(tmp_path, rows):
    array = ArrayAppender(tmp_path / "a.npy", np.int32, columns=4)
    array.append([(row, 1, 2, 3) for row in range(rows)])
    array.close()
    read = np.load(tmp_path / "a.npy")
    assert read.shape == (rows, 4) and read[:, 0].tolist() == list(range(rows))


def test_evenly_spaced_rows_reach_from_the_first_to_the_last():
    assert evenly_spaced(3, 256).tolist() == [0, 1, 2]
    rows = evenly_spaced(10_001, 256)
    assert len(set(rows.tolist())) == 256 and rows[0] == 0 and rows[-1] == 10_000
