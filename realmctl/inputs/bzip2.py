"""Decompress bzip2 files of several streams, such as multistream Wikipedia dumps, on several cores.

A stream begins at a byte boundary with a known mark. So the file is cut at the marks, and threads decompress the pieces at the same
time; `bz2` lets other threads run meanwhile. The mark may also occur inside a stream. A piece that does not end with the end
of a stream is therefore continued with the next piece, as in a file without marks.
"""

from __future__ import annotations

import bz2
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO

MARK = re.compile(rb"BZh[1-9]1AY&SY")
"""The first ten bytes of a stream that is not empty."""
MARK_BYTES = 10
READ_BYTES = 2**20
PIECE_BYTES = 2**22
"""Longest piece. A stream of Wikipedia's dumps has about a hundred pages and is smaller."""
OUTPUT_BYTES = 2**24
"""Bytes that a thread makes of a piece. What is beyond is made when its turn comes, in small steps."""
STEP_BYTES = 2**20
AHEAD_PER_THREAD = 2


@dataclass
class _Started:
    """A decompressor that has been fed a piece, and what it made so far."""

    output: bytes
    decompressor: Any


def decompressed_streams(file: BinaryIO, threads: int) -> Iterator[bytes]:
    """Yield the decompressed content of a bzip2 file in pieces of at most 16 MiB; without `threads`, of at most 1 MiB, and only as it is read.

    At most 2 `threads` + 1 pieces are held: 20 MiB each.

    Raises:
        OSError: the data is damaged.
        EOFError: the last stream has no end.
    """
    if not threads:
        yield from _in_order((piece, None) for piece in _pieces(file))
        return
    with ThreadPoolExecutor(threads, "bunzip2") as pool:
        ahead: deque[tuple[bytes, Future[_Started]]] = deque()
        try:
            yield from _in_order(_pieces_ahead(file, pool, ahead, AHEAD_PER_THREAD * threads))
        finally:
            for _, started in ahead:
                started.cancel()


def _pieces_ahead(
    file: BinaryIO, pool: ThreadPoolExecutor, ahead: deque[tuple[bytes, Future[_Started]]], most: int
) -> Iterator[tuple[bytes, Future[_Started]]]:
    for piece in _pieces(file):
        ahead.append((piece, pool.submit(_start, piece)))
        if len(ahead) > most:
            yield ahead.popleft()
    while ahead:
        yield ahead.popleft()


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Cut a file at the marks, and where no mark comes for PIECE_BYTES."""
    held, searched = b"", 1
    while data := file.read(READ_BYTES):
        held += data
        while mark := MARK.search(held, searched):
            yield held[: mark.start()]
            held, searched = held[mark.start() :], 1
        searched = max(1, len(held) - MARK_BYTES + 1)
        if len(held) >= PIECE_BYTES:
            yield held[:searched]
            held, searched = held[searched:], 1
    if held:
        yield held


def _start(piece: bytes) -> _Started:
    """Decompress a piece as if a stream began with it. An error is found again, and raised, in its turn."""
    decompressor = bz2.BZ2Decompressor()
    if not MARK.match(piece):
        return _Started(b"", decompressor)
    try:
        return _Started(decompressor.decompress(piece, OUTPUT_BYTES), decompressor)
    except (OSError, ValueError):
        return _Started(b"", bz2.BZ2Decompressor())


def _in_order(pieces: Iterator[tuple[bytes, Future[_Started] | None]]) -> Iterator[bytes]:
    """Join what was made of the pieces, if a thread was given them. `open_stream` is the decompressor of a stream that goes on in the next piece."""
    open_stream: Any = None
    for piece, future in pieces:
        started = future.result() if future else None
        if open_stream is None and started and started.output:
            yield started.output
            decompressor, data = started.decompressor, b""
        else:
            decompressor, data = open_stream or bz2.BZ2Decompressor(), piece
        while True:
            while not decompressor.eof and (data or not decompressor.needs_input):
                made, data = decompressor.decompress(data, STEP_BYTES), b""
                if made:
                    yield made
            if not decompressor.eof:
                open_stream = decompressor
                break
            data, open_stream = decompressor.unused_data, None
            if not data:
                break
            decompressor = bz2.BZ2Decompressor()
    if open_stream is not None:
        raise EOFError("its last stream has no end")
