"""Arrays that grow by rows are read back whole, for every length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.artifacts.arrays import ArrayAppender, Ragged, evenly_spaced, open_array
from realmctl.errors import InputError


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


def ragged(folder, values, offsets):
    np.save(folder / "values.npy", values)
    np.save(folder / "offsets.npy", offsets)
    return Ragged(folder / "values.npy", folder / "offsets.npy")


@given(st.lists(st.lists(st.integers(0, 255), max_size=5), max_size=8))
def test_rows_of_different_lengths(tmp_path_factory, rows):
    values = np.array([value for row in rows for value in row], np.uint8)
    found = ragged(tmp_path_factory.mktemp("ragged"), values, np.cumsum([0, *map(len, rows)]))
    assert [found[row].tolist() for row in range(len(found))] == rows
    assert found.lengths.tolist() == [*map(len, rows)]


@pytest.mark.parametrize(
    ("values", "offsets"),
    [
        ([7, 8, 9], [1, 3]),
        ([7, 8, 9], [0, 2]),
        ([7, 8, 9], [0, 4]),
        ([7, 8, 9], [0, 2, 1, 3]),
        ([7, 8, 9], [0.0, 3.0]),
        ([7, 8, 9], [[0, 3]]),
        ([7.0, 8.0, 9.0], [0, 3]),
        ([[7], [8], [9]], [0, 3]),
        (np.zeros(0, np.int64), np.zeros(0, np.int64)),
    ],
)
def test_offsets_that_do_not_describe_the_values_are_refused(tmp_path, values, offsets):
    with pytest.raises(InputError, match=r"values\.npy"):
        ragged(tmp_path, values, offsets)


@pytest.mark.parametrize("array", [[True], ["a"], [1j], [b"a"]])
def test_an_array_of_something_else_than_numbers_is_refused(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(InputError, match=r"a\.npy"):
        open_array(tmp_path / "a.npy")
