"""Embeddings for other search libraries: arrays with ids, and Tevatron's pickled pair.

Tevatron (github.com/texttron/tevatron) reads a pickle of (float32 array, list of ids). The pickle is written opcode by
opcode (docs.python.org/3/library/pickletools.html), so that a matrix of any size goes through in pieces.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError, MismatchError
from realmctl.index.vectors import chunks, open_vectors

VECTORS, IDS = "vectors.npy", "ids.txt"


def write_vectors(embeddings: Artifact, blocks: Artifact | None, folder: Path) -> dict[str, int]:
    """Write vectors.npy, float32 [blocks, width], and ids.txt. Row i of the array has the id in line i."""
    vectors_ND = _vectors(embeddings)
    folder.mkdir()
    out_ND = np.lib.format.open_memmap(folder / VECTORS, mode="w+", dtype=np.float32, shape=vectors_ND.shape)
    for start, part_BD in chunks(vectors_ND):
        out_ND[start : start + len(part_BD)] = part_BD
    out_ND.flush()
    with (folder / IDS).open("w", encoding="utf-8") as file:
        for identity in _ids(blocks, len(vectors_ND)):
            if len(identity.splitlines()) != 1:
                raise InputError(f"{blocks}: the id {identity!r} has a line break, so it does not fit into {IDS}.")
            file.write(identity + "\n")
    return _summary(vectors_ND)


def write_tevatron(embeddings: Artifact, blocks: Artifact | None, path: Path) -> dict[str, int]:
    """Write a pickle of (float32 array [blocks, width], list of ids), as Tevatron's `encode` does."""
    vectors_ND = _vectors(embeddings)
    with path.open("wb") as file:
        file.write(b"\x80\x04")  # protocol 4
        file.write(b"cnumpy\nreshape\n(cnumpy\nfrombuffer\n(")
        file.write(b"\x8e" + struct.pack("<Q", vectors_ND.size * 4))
        for _, part_BD in chunks(vectors_ND):
            file.write(part_BD.astype("<f4").tobytes())
        _write_text(file, "<f4")
        file.write(b"tR(" + b"".join(b"\x8a\x08" + struct.pack("<q", size) for size in vectors_ND.shape) + b"ttR")
        file.write(b"](")
        for identity in _ids(blocks, len(vectors_ND)):
            _write_text(file, identity)
        file.write(b"e\x86.")
    return _summary(vectors_ND)


def _write_text(file: BinaryIO, text: str) -> None:
    data = text.encode()
    file.write(b"X" + struct.pack("<I", len(data)) + data)


def _vectors(embeddings: Artifact) -> NDArray[np.floating[Any]]:
    return open_vectors(embeddings.file("embeddings.npy"))


def _ids(blocks: Artifact | None, count: int) -> Iterator[str]:
    assert blocks is not None
    corpus = Corpus(blocks)
    if len(corpus) != count:
        raise MismatchError(
            f"{blocks} has {len(corpus)} blocks, and there are {count} vectors. Embed the blocks again."
        )
    return (block.id for block in corpus)


def _summary(vectors_ND: NDArray[np.floating[Any]]) -> dict[str, int]:
    return {"vectors": len(vectors_ND), "width": vectors_ND.shape[1]}
