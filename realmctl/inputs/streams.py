"""Read files as streams of bytes or lines, plain or compressed by gzip, bzip2, xz or zstd.

The compression of a file is detected from its first bytes; its name does not matter. Files of several compressed
streams, such as multistream Wikipedia dumps, are read to the end. Memory stays bounded however much a file expands. A
file that was cut is an error. The libraries do not check that: a zstd reader takes the end of a cut file for the end of
the data. fsspec does not either: it goes by the name of a file, takes a cut zstd file for whole, and decompresses bzip2 in one
thread.
"""

from __future__ import annotations

import codecs
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from realmctl.artifacts.file_kinds import binary_kind
from realmctl.errors import InputError, RealmctlError, as_realmctl_error
from realmctl.execution.cores import usable_cores
from realmctl.inputs.bzip2 import decompressed_streams
from realmctl.log import warn

READ_BYTES = 2**18
MAX_THREADS = 8
"""Threads that decompress a bzip2 file of several streams."""
MAX_STEP_BYTES = 2**20
ZSTD_READ_BYTES = 2**10  # zstd cannot limit its output: 1 KiB in is at most 32 MiB out
ZSTD_MAX_WINDOW = 2**27
MAX_LINE_BYTES = 16 * 2**20
XZ_MEMORY_BYTES = 2**28  # xz -9 needs 65 MiB
TO_TEXT = {
    "zip archive": "Unpack it, and name the result. Office documents and books are read by their endings (.docx, .odt, .epub) with the extra documents.",
    "tar archive": "Unpack it, and name the result.",
    "7z archive": "Unpack it, and name the result.",
    "RAR archive": "Unpack it, and name the result.",
    "PDF file": "Extract its text, for instance with pdftotext FILE.pdf of poppler, and name the result.",
    "RTF document": "Save it as plain text, and name the result.",
    "document of an old Office format": "Save it as .docx, .pptx or .xlsx, or as plain text, and name the result.",
    "SQLite database": "Export its texts as JSON lines, and name the result.",
}
"""What to do with files that hold text in another form."""
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
NOT_WESTERN = re.compile(
    rb"[\x80-\xff]{3}|[\x81\x83\x86-\x89\x8b\x8d-\x90\x98\x9b\x9d\x9f]|[a-z][\xb2\xb3\xb9\xbc-\xbe][a-z]"
)
"""What Windows-1252 has in no text of western Europe: three such letters in a row, signs that none writes, and raised figures within words."""
OF_UTF_8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
"""A letter of several bytes in UTF-8. A text that has one is damaged, and in no other charset."""
GZIP, BZIP2, ZSTD, XZ = b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00"


def decompressed(path: Path, ahead: bool = True) -> Iterator[bytes]:
    """Yield the decompressed content of `path` in pieces of at most 32 MiB.

    Args:
        path: the file.
        ahead: whether threads decompress bzip2 before the caller asks for it.

    Raises:
        InputError: the file is missing, damaged or cut. The message names it.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(6)
            file.seek(0)
            if magic[:2] == GZIP:
                yield from _members(path, iter(lambda: file.read(READ_BYTES), b""), _Gzip)
            elif magic[:3] == BZIP2:
                yield from _bzip2(path, file, min(MAX_THREADS, usable_cores()) if ahead else 0)
            elif magic == XZ:
                yield from _members(path, iter(lambda: file.read(READ_BYTES), b""), _Xz)
            elif magic[:4] == ZSTD:
                yield from _members(path, iter(lambda: file.read(ZSTD_READ_BYTES), b""), _Zstd)
            else:
                yield from iter(lambda: file.read(READ_BYTES), b"")
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, but a file is expected.") from None
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file. Check the spelling of the path.") from None


def section(path: Path, begin: int, end: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file from `begin` to `end`, as they are stored, in pieces of at most 256 KiB.

    Pieces end where those of `decompressed` end for a file that is not compressed. Without `end`, they go on to the end of the file.

    Raises:
        InputError: the file ends before `end`.
    """
    with path.open("rb") as file:
        file.seek(begin)
        while end is None or begin < end:
            most = READ_BYTES - begin % READ_BYTES
            piece = file.read(most if end is None else min(most, end - begin))
            if not piece and end is not None:
                raise InputError(f"{path} became shorter while it was read. Write to another file, and start again.")
            if not piece:
                return
            yield piece
            begin += len(piece)


def _bzip2(path: Path, file: BinaryIO, threads: int) -> Iterator[bytes]:
    try:
        yield from decompressed_streams(file, threads)
    except EOFError:
        raise _cut(path) from None
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from None


def _members(path: Path, blocks: Iterator[bytes], decompressor: Callable[[], Any]) -> Iterator[bytes]:
    """Decompress one stream (gzip member, zstd frame) after the other. The last one must be complete."""
    member, begun = decompressor(), False
    try:
        for data in blocks:
            while data:
                begun = True
                piece = member.decompress(data, MAX_STEP_BYTES)
                while piece:
                    yield piece
                    piece = b"" if member.eof else member.decompress(b"", MAX_STEP_BYTES)
                if not member.eof:
                    break
                data, member, begun = member.unused_data, decompressor(), False
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zstandard.ZstdError, ValueError) as error:
        raise _damaged(path, error) from None
    if begun:
        raise _cut(path)


def _damaged(path: Path, error: Exception) -> RealmctlError:
    return as_realmctl_error(error, path) or InputError(
        f"{path} is damaged: it cannot be decompressed ({error}). Get the file again."
    )


def _cut(path: Path) -> InputError:
    return InputError(f"{path} is cut short: its last compressed stream has no end. Get the file again.")


class _Gzip:
    """zlib's decompressor with the interface of bz2's: it keeps the input that a limited step did not use."""

    def __init__(self) -> None:
        self._object = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, limit: int) -> bytes:
        return self._object.decompress(self._object.unconsumed_tail + data, limit)

    @property
    def eof(self) -> bool:
        return self._object.eof

    @property
    def unused_data(self) -> bytes:
        return self._object.unused_data.lstrip(b"\0")  # gzip pads with zeros


class _Xz:
    """One xz stream, with a limit on the memory that its header may ask for."""

    def __init__(self) -> None:
        self._object = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES)

    def decompress(self, data: bytes, limit: int) -> bytes:
        return self._object.decompress(data, limit)

    @property
    def eof(self) -> bool:
        return self._object.eof

    @property
    def unused_data(self) -> bytes:
        return self._object.unused_data.lstrip(b"\0")  # xz pads streams with zeros


class _Zstd:
    """A decompressor of one zstd frame. zstd cannot limit its output, so the caller feeds it little input at a time."""

    def __init__(self) -> None:
        self._object = zstandard.ZstdDecompressor(max_window_size=ZSTD_MAX_WINDOW).decompressobj()

    def decompress(self, data: bytes, limit: int) -> bytes:
        return self._object.decompress(data) if data else b""

    @property
    def eof(self) -> bool:
        return self._object.eof

    @property
    def unused_data(self) -> bytes:
        return self._object.unused_data


def head(path: Path, size: int = 2**16) -> bytes:
    """Return the first `size` decompressed bytes, or all of a shorter file."""
    data = b""
    for piece in _in_utf_8(path, decompressed(path, ahead=False)):
        data += piece
        if len(data) >= size:
            break
    return data[:size]


def require_text(path: Path, start: bytes) -> None:
    """Raise InputError if the first decompressed bytes of a file show that it is no text, such as an image."""
    if kind := binary_kind(start):
        advice = TO_TEXT.get(kind, "Name a file of text, JSON, CSV, TSV or Parquet.")
        raise InputError(f"{path} is not text (format: {kind}). {advice}")


def _in_utf_8(path: Path, pieces: Iterator[bytes], guess: bool = False) -> Iterator[bytes]:
    """Yield the pieces of a text in UTF-8: what begins with the mark of UTF-16 is decoded, and with `guess` what is Windows-1252 by all that it holds at its
    begin, with a warning.
    """
    first = next(pieces, b"")
    charset = "utf-16" if first.startswith(UTF_16) else ""
    if guess and not charset and not first.isascii() and not OF_UTF_8.search(first) and not NOT_WESTERN.search(first):
        charset = "cp1252"
        warn(
            f"{path} is not UTF-8, and is read as Windows-1252. If letters are wrong, convert it to UTF-8, for instance with iconv."
        )
    if not charset:
        yield first
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder(charset)("strict" if guess else "replace")
    try:
        for piece in chain([first], pieces):
            yield decoder.decode(piece).encode()
        yield decoder.decode(b"", guess).encode()
    except UnicodeError as error:
        raise InputError(
            f"{path}: not {charset.upper()} ({error}). Convert it to UTF-8, for instance with iconv."
        ) from None


def _text_pieces(path: Path) -> Iterator[bytes]:
    """Yield what `decompressed` yields, in UTF-8. Raises InputError if the first piece is no text."""
    pieces = _in_utf_8(path, decompressed(path), guess=True)
    first = next(pieces, b"")
    require_text(path, first)
    yield first
    yield from pieces


def lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield (number from 1, line without its end) of a UTF-8 text. A `\r` before the end and a byte order mark are
    removed.

    Raises:
        InputError: invalid UTF-8, a line of more than 16 MiB, or a binary file. The message names file and line.
    """
    number, rest = 0, [b""]
    size = 0
    for piece in _text_pieces(path):
        *whole, tail = piece.split(b"\n")
        if whole:
            whole[0] = b"".join(rest) + whole[0]
            rest, size = [], 0
        for line in whole:
            number += 1
            yield number, _decoded(path, number, line)
        rest.append(tail)
        size += len(tail)
        if size > MAX_LINE_BYTES:
            raise InputError(
                f"{path}:{number + 1}: a line of more than {MAX_LINE_BYTES // 2**20} MiB. Is this file "
                f"text, one record a line?"
            )
    if last := b"".join(rest):
        yield number + 1, _decoded(path, number + 1, last)


def _decoded(path: Path, number: int, line: bytes) -> str:
    if len(line) > MAX_LINE_BYTES:
        raise InputError(
            f"{path}:{number}: a line of more than {MAX_LINE_BYTES // 2**20} MiB. Is this file text, one record a line?"
        )
    try:
        text = line.decode().removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}:{number}: not UTF-8 at byte {error.start} of the line ({error.reason}). Convert the "
            f"file to UTF-8, for instance with iconv."
        ) from None
    return text.removeprefix("\ufeff") if number == 1 else text


def whole_bytes(path: Path, limit: int) -> bytes:
    """Return the decompressed content of a file of at most `limit` bytes. Raises InputError if it is larger."""
    return _whole(path, decompressed(path), limit)


def _whole(path: Path, pieces: Iterator[bytes], limit: int) -> bytes:
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size > limit:
            raise InputError(
                f"{path} holds more than {limit // 2**20} MiB in one document. Split it, or write it as JSON lines."
            )
    return b"".join(found)


def whole_text(path: Path, limit: int) -> str:
    """Return the content of a UTF-8 file of at most `limit` bytes.

    Raises:
        InputError: the file is larger, or is not UTF-8, or is binary.
    """
    data = _whole(path, _text_pieces(path), limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}:{line}: not UTF-8 at byte {error.start} of the file ({error.reason}). Convert it, for "
            f"instance with iconv."
        ) from None
