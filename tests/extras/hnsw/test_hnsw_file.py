"""Damaged and hostile graphs: every one must be refused before hnswlib, which would crash or answer wrongly,
reads it.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.errors import InputError
from realmctl.extras.hnsw.hnsw import build_graph, load_graph, save_graph
from realmctl.extras.hnsw.hnsw_file import check_file
from tests.fixtures.index import clustered

HEADER = 96
COUNT = 120
RECORD = 4 + 4 * 8 + 4 * 8 + 8
"""m = 4 and 8 dimensions: list head, 8 links, vector, label."""


@pytest.fixture(scope="module")
def matrix():
    return clustered(COUNT, 8)


@pytest.fixture(scope="module")
def sound(matrix, tmp_path_factory):
    """(bytes, shape) of a graph with several levels."""
    path = tmp_path_factory.mktemp("graph") / "g.bin"
    shape = save_graph(build_graph(matrix, m=4, ef_construction=20, seed=0, threads=1), path)
    assert shape.max_level >= 2
    return path.read_bytes(), shape


@pytest.fixture
def refused(sound, matrix, tmp_path):
    def check(data: bytes, shape=None) -> str:
        (tmp_path / "g.bin").write_bytes(data)
        with pytest.raises(InputError) as error:
            check_file(tmp_path / "g.bin", shape or sound[1], matrix)
        return str(error.value)

    return check


def with_word(data: bytes, at: int, value: int, size: int = 4) -> bytes:
    return data[:at] + value.to_bytes(size, "little") + data[at + size :]


def test_a_sound_file_passes_and_loads(sound, matrix, tmp_path):
    (tmp_path / "g.bin").write_bytes(sound[0])
    assert load_graph(tmp_path / "g.bin", sound[1], matrix).element_count == COUNT


def test_every_flipped_bit_of_the_header_is_refused(sound, refused):
    data, _ = sound
    for bit in range(8 * HEADER):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        refused(bytes(flipped))


def test_every_shorter_file_is_refused(sound, refused):
    data, _ = sound
    for length in [*range(200), *range(200, len(data), 37), len(data) - 1]:
        refused(data[:length])
    refused(data + b"\0\0\0\0")


@pytest.mark.parametrize("field", ["count", "dimension", "m", "ef_construction", "max_level", "entry_point"])
def test_another_shape_than_described_is_refused(sound, refused, field):
    data, shape = sound
    for step in (-1, 1):
        refused(data, dataclasses.replace(shape, **{field: getattr(shape, field) + step}))


def test_a_missing_file_is_refused(sound, matrix, tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        check_file(tmp_path / "none.bin", sound[1], matrix)


@pytest.mark.parametrize(
    "at, value, size, fault",
    [
        (0, 9, 2, "point nowhere"),
        (0, 65535, 2, "point nowhere"),
        (2, 1, 1, "deleted"),
        (4, COUNT, 4, "point nowhere"),
        (4, 2**32 - 1, 4, "point nowhere"),
        (4 + 32, 0x7FC00000, 4, "not those of the embeddings"),
        (RECORD - 8, 1, 8, "not the rows"),
    ],
    ids=[
        "too many links",
        "65535 links",
        "deleted",
        "link past the end",
        "link far past the end",
        "NaN",
        "wrong id",
    ],
)
def test_a_damaged_node_is_refused(sound, refused, at, value, size, fault):
    data = with_word(sound[0], HEADER + 7 * RECORD + at, value, size)
    if fault == "point nowhere" and at == 4:
        assert int.from_bytes(sound[0][HEADER + 7 * RECORD :][:2], "little") > 0
    assert fault in refused(data)


def test_damaged_upper_levels_are_refused(sound, refused):
    data, shape = sound
    start = HEADER + COUNT * RECORD
    words = np.frombuffer(data[start:], "<u4")
    first = int(np.flatnonzero(words)[0])
    at, size = start + 4 * first, int(words[first])
    assert "do not fit" in refused(with_word(data, at, size + 4))
    assert "do not fit" in refused(with_word(data, at, 2**31))
    refused(with_word(data, at, 0))
    assert "upper links point nowhere" in refused(with_word(data, at + 4, 5, 2))
    assert "upper links point nowhere" in refused(with_word(data, at + 8, COUNT))
    grounded = next(i for i in range(COUNT) if i not in upper_nodes(words, shape))
    assert "not so high" in refused(with_word(data, at + 8, grounded))


def test_an_entry_point_below_the_top_is_refused(sound, refused):
    data, shape = sound
    other = (shape.entry_point + 1) % COUNT
    lower = dataclasses.replace(shape, entry_point=other)
    assert "entry point" in refused(lower.header() + data[HEADER:], lower)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_what_passes_with_a_flipped_bit_loads_and_answers(sound, matrix, tmp_path_factory, data):
    """A flip that leaves a valid graph may pass (its hash does not); it must then neither crash nor return a
    wrong score.
    """
    from realmctl.extras.hnsw.hnsw import HnswIndex

    whole = bytearray(sound[0])
    bit = data.draw(st.integers(8 * HEADER, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    path = tmp_path_factory.mktemp("flip") / "g.bin"
    path.write_bytes(bytes(whole))
    try:
        index = HnswIndex(load_graph(path, sound[1], matrix), matrix, ef=COUNT)
    except InputError:
        return
    scores, ids = index.search(matrix[:5], 8)
    np.testing.assert_allclose(scores, np.einsum("bd,bkd->bk", matrix[:5], matrix[ids]), rtol=1e-5)


def upper_nodes(words: np.ndarray, shape) -> set[int]:
    """Nodes above level 0, walked word by word."""
    found, at = set(), 0
    for node in range(shape.count):
        if words[at]:
            found.add(node)
        at += 1 + int(words[at]) // 4
    return found
