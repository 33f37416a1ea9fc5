"""Check hnswlib's file before hnswlib reads it.

hnswlib 0.8 does not check its files: a flipped bit crashes the process or gives wrong neighbours without an error. The file
records neither dimension nor metric. So every byte that is determined by the graph's known numbers is compared, and the
links are checked for consistency. Layout (little endian), from `saveIndex`
and `loadIndex` in hnswlib's hnswalg.h:

    header   96 bytes, `_HEADER`
    level 0  for each vector: link list (count u16, deleted u8, unused u8, 2M ids u32), D floats, label u64
    above    for each vector: size u32, and in `size` bytes a link list of M ids for each upper level it is on
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realmctl.errors import InputError, as_realmctl_error
from realmctl.index.protocol import Vectors
from realmctl.index.vectors import chunks

_HEADER = struct.Struct("<6Q i I 3Q d Q")


@dataclass(frozen=True)
class GraphShape:
    """The numbers that determine a graph file, apart from its links and vectors."""

    count: int
    dimension: int
    m: int
    ef_construction: int
    max_level: int
    entry_point: int

    def header(self) -> bytes:
        """Return the 96 bytes that a valid file of this shape begins with."""
        vector_at = 4 + 8 * self.m
        label_at = vector_at + 4 * self.dimension
        return _HEADER.pack(
            0,
            self.count,
            self.count,
            label_at + 8,
            label_at,
            vector_at,
            self.max_level,
            self.entry_point,
            self.m,
            2 * self.m,
            self.m,
            1 / math.log(self.m),
            self.ef_construction,
        )

    def record(self) -> np.dtype[np.void]:
        """Return the type of one vector's record on level 0."""
        links = [("links", "<u2"), ("deleted", "u1"), ("unused", "u1"), ("ids", "<u4", (2 * self.m,))]
        return np.dtype([*links, ("vector", "<f4", (self.dimension,)), ("label", "<u8")])

    def upper(self) -> np.dtype[np.void]:
        """Return the type of one link list on an upper level."""
        return np.dtype([("links", "<u2"), ("unused", "<u2"), ("ids", "<u4", (self.m,))])


def read_entry(path: Path) -> tuple[int, int]:
    """Return (max_level, entry_point) of a file that was just written. hnswlib chose them at random."""
    with path.open("rb") as file:
        fields = _HEADER.unpack(file.read(_HEADER.size))
    return fields[6], fields[7]


def check_file(path: Path, shape: GraphShape, vectors: Vectors) -> None:
    """Raise InputError unless `path` is a complete graph of this shape over exactly these vectors [n, D].

    A file with valid links other than those built passes this check. The hash in index.json and the canaries exclude it.
    """
    try:
        data = np.memmap(path, np.uint8, mode="r")
    except (OSError, ValueError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"The graph {path} cannot be read: {error}. Build the index again."
        ) from None
    record = shape.record()
    upper_at = _HEADER.size + shape.count * record.itemsize
    _require(len(data) >= upper_at + 4 * shape.count, path, f"it is cut off after {len(data)} bytes")
    header = bytes(data[: _HEADER.size])
    _require(header == shape.header(), path, "its header is not that of the index described beside it")
    nodes = data[_HEADER.size : upper_at].view(record)
    levels, lists = _upper_lists(data[upper_at:], shape, path)
    _check_levels(levels, shape, path)
    ids = nodes["label"].astype(np.int64)  # in insertion order: the order of the rows with one thread only
    _require(np.array_equal(np.sort(ids), np.arange(shape.count)), path, "its ids are not the rows of the vectors")
    for start, rows in chunks(vectors):
        held = ids[start : start + len(rows)]
        in_order = held[0] == start and bool((np.diff(held) == 1).all())
        _check_nodes(nodes[start : start + len(rows)], rows if in_order else vectors[held], shape, path)
    _check_upper(lists, levels, shape, path)


def _upper_lists(
    tail: NDArray[np.uint8], shape: GraphShape, path: Path
) -> tuple[NDArray[np.int64], list[tuple[int, NDArray[np.void]]]]:
    """Return the level of every node, and (node, its link lists above level 0) for the few nodes that have some.

    Most entries are a single zero, the size of an empty list. So the loop skips from one nonzero word to the next one that
    begins an entry.
    """
    _require(len(tail) % 4 == 0, path, "its length is odd")
    words = tail.view("<u4")
    filled = np.flatnonzero(words)
    levels, lists = np.zeros(shape.count, np.int64), []
    list_bytes, at, node = shape.upper().itemsize, 0, 0
    while (place := int(np.searchsorted(filled, at))) < len(filled):
        node += int(filled[place]) - at
        size, at = int(words[filled[place]]), int(filled[place]) + 1
        sound = node < shape.count and size % list_bytes == 0 and at + size // 4 <= len(words)
        _require(sound, path, "the upper levels of its graph do not fit into it")
        levels[node] = size // list_bytes
        lists.append((node, words[at : at + size // 4].view(shape.upper())))
        at, node = at + size // 4, node + 1
    _require(node + len(words) - at == shape.count, path, "it holds more or fewer nodes than vectors")
    return levels, lists


def _check_levels(levels: NDArray[np.int64], shape: GraphShape, path: Path) -> None:
    sound = levels.max() == shape.max_level and levels[shape.entry_point] == shape.max_level
    _require(bool(sound), path, "its entry point is not on its highest level")


def _check_nodes(nodes: NDArray[np.void], rows: Vectors, shape: GraphShape, path: Path) -> None:
    _require(np.array_equal(nodes["vector"], rows), path, "its vectors are not those of the embeddings")
    _require(not nodes["deleted"].any(), path, "some of its vectors are marked as deleted")
    _require(_links_within(nodes, 2 * shape.m, shape.count), path, "some of its links point nowhere")


def _check_upper(
    lists: list[tuple[int, NDArray[np.void]]], levels: NDArray[np.int64], shape: GraphShape, path: Path
) -> None:
    """Check that a link on level l leads to a node on level l or higher. Otherwise hnswlib reads beyond that node's lists."""
    if not lists:
        return
    links = np.concatenate([own for _, own in lists])
    level = np.concatenate([np.arange(1, len(own) + 1) for _, own in lists])
    _require(_links_within(links, shape.m, shape.count), path, "some of its upper links point nowhere")
    used = np.arange(shape.m) < links["links"][:, None]
    reached = np.where(used, levels[np.where(used, links["ids"], 0)], shape.max_level)
    high_enough = bool((reached >= level[:, None]).all())
    _require(high_enough, path, "some of its upper links lead to a node that is not so high")


def _links_within(lists: NDArray[np.void], most: int, count: int) -> bool:
    used = np.arange(most) < lists["links"][:, None]
    return bool((lists["links"] <= most).all() and (np.where(used, lists["ids"], 0) < count).all())


def _require(sound: bool, path: Path, fault: str) -> None:
    if not sound:
        raise InputError(
            f"The graph {path} is damaged: {fault}. It was not loaded. Restore the file or build the index again."
        )
