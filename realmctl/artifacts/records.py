"""`.jsonl.zst` files with random access: records in independent, checksummed zstd frames, and a table of offsets.

`zstdcat x.jsonl.zst | jq` works on these files. The table `x.frames.json` makes `records[i]` one small read.
It also makes a truncated file an error: zstd readers accept a file that was cut between two frames.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, overload

import zstandard

from realmctl.artifacts.disk import CheckedFile, read_small, write_file
from realmctl.errors import InputError, as_realmctl_error

RECORDS_PER_FRAME = 128
ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
EMPTY_FRAME = zstandard.ZstdCompressor().compress(b"")
"""What a file without records holds: zstdcat does not accept a file of no bytes."""
KEPT_FRAMES = 32
"""Decoded frames that a reader keeps in memory. Searches often read the same blocks again."""
MAX_FRAME_BYTES = 2**28
"""Limit on the size of a decoded frame."""
MAX_TABLE_BYTES = 2**28
"""Limit on the size of a frame table: 256 MiB are the offsets of about two billion records."""


def frames_path(path: Path) -> Path:
    """Path of the frame table of `name.jsonl.zst`: `name.frames.json`."""
    return path.with_name(path.name.removesuffix(".jsonl.zst") + ".frames.json")


class RecordWriter:
    """Write JSON objects to `path` (`*.jsonl.zst`) in bounded memory. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        self._file = CheckedFile(path)
        self._compressor = zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=True)
        self._lines: list[bytes] = []
        self._offsets = [0]

    def write(self, record: Mapping[str, object]) -> None:
        """Append one record. Raises InputError for text with half of a surrogate pair, which has no UTF-8 form."""
        try:
            line = ENCODER.encode(record).encode()
        except UnicodeEncodeError as error:
            around = error.object[max(0, error.start - 40) : error.start]
            raise InputError(
                f"{self.path}, record {self.count}: {error.object[error.start]!r} after {around!r} is half "
                "of a surrogate pair, which has no UTF-8 form. Remove it from the corpus."
            ) from None
        self._lines.append(line)
        self.count += 1
        if len(self._lines) == RECORDS_PER_FRAME:
            self._flush()

    def _flush(self) -> None:
        if not self._lines:
            return
        text = b"\n".join(self._lines) + b"\n"
        if len(text) > MAX_FRAME_BYTES:
            raise InputError(
                f"{self.path}, record {self.count}: {RECORDS_PER_FRAME} records hold {len(text)} bytes, "
                f"more than the {MAX_FRAME_BYTES} that are read back. Divide the corpus into shorter documents."
            )
        frame = self._compressor.compress(text)
        self._file.write(frame)
        self._offsets.append(self._offsets[-1] + len(frame))
        self._lines = []

    def close(self) -> None:
        """Write the last frame and the frame table, and read both back. Raises OSError when bytes were lost."""
        self._flush()
        if not self.count:  # so that zstdcat reads it
            self._file.write(EMPTY_FRAME)
        self._file.close()
        table = {"records": self.count, "records_per_frame": RECORDS_PER_FRAME, "offsets": self._offsets}
        write_file(frames_path(self.path), json.dumps(table).encode())

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._file.abandon()


class Records(Sequence[dict[str, Any]]):
    """Read what `RecordWriter` wrote, at random or in order, in bounded memory.

    Raises InputError when the file does not hold what its frame table says.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            table = json.loads(read_small(frames_path(path), MAX_TABLE_BYTES))
            self._count, self._per_frame, self._offsets = _checked(table)
            size = path.stat().st_size
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise as_realmctl_error(error, path) or InputError(
                f"{path} cannot be read with its frame table: {error}. Make the artifact again."
            ) from None
        expected = self._offsets[-1] or len(EMPTY_FRAME)
        if size != expected:
            raise InputError(
                f"{path} has {size} bytes, but its frame table records {expected}. The file was cut or "
                "changed. Restore it, or make the artifact again."
            )
        self._kept = lru_cache(maxsize=KEPT_FRAMES)(partial(_read_frame, path))  # not of `self`: a cycle is freed late

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = index + len(self) if index < 0 else index
        if not 0 <= i < len(self):
            raise IndexError(index)
        frame, place = divmod(i, self._per_frame)
        kept = self._kept(*self._place(frame))
        if isinstance(
            kept[place], bytes
        ):  # most readers want one record of a frame, and parsing all would take most of their time
            kept[place] = _parsed([kept[place]], self.path, frame)[0]
        record: dict[str, Any] = kept[place]
        return record

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for frame in range(len(self._offsets) - 1):
            yield from _parsed(_read_frame(self.path, *self._place(frame)), self.path, frame)

    def _place(self, frame: int) -> tuple[int, int, int, int]:
        """A frame: its number, its first byte and the one after its last, and its records."""
        count = min(self._per_frame, self._count - frame * self._per_frame)
        return frame, self._offsets[frame], self._offsets[frame + 1], count


def _read_frame(path: Path, frame: int, start: int, stop: int, expected: int) -> list[Any]:
    """The lines of a frame, bytes. Who parses one may keep the record in its place."""
    with _telling_damage(path, frame):
        with path.open("rb") as file:
            file.seek(start)
            lines = _decompressed(file.read(stop - start)).splitlines()
        if len(lines) != expected:
            raise ValueError(f"{len(lines)} records where {expected} should be")
        return lines


def _parsed(lines: Sequence[bytes], path: Path, frame: int) -> list[dict[str, Any]]:
    with _telling_damage(path, frame):
        return [json.loads(line) for line in lines]


@contextmanager
def _telling_damage(path: Path, frame: int) -> Iterator[None]:
    """Turn what a damaged frame raises into an InputError that names it."""
    try:
        yield
    except (OSError, ValueError, RecursionError, zstandard.ZstdError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"{path}, frame {frame}: {error}. The file is damaged; make the artifact again."
        ) from None


def _checked(table: Any) -> tuple[int, int, list[int]]:
    count, per_frame, offsets = table["records"], table["records_per_frame"], table["offsets"]
    numbers = [count, per_frame, *offsets]
    natural = all(type(number) is int and number >= 0 for number in numbers)
    if not natural or per_frame == 0 or offsets[:1] != [0]:
        raise ValueError("its numbers are not valid")
    if len(offsets) - 1 != -(-count // per_frame) or any(a >= b for a, b in itertools.pairwise(offsets)):
        raise ValueError("its offsets do not ascend, or are not one per frame")
    return count, per_frame, offsets


def _decompressed(frame: bytes) -> bytes:
    size = zstandard.frame_content_size(frame)
    if not 0 <= size <= MAX_FRAME_BYTES:
        raise ValueError(f"the frame claims {size} bytes, and the limit is {MAX_FRAME_BYTES}")
    return zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
