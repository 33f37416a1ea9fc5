"""`.jsonl.zst` with random access: records in independent, checksummed zstd frames, and a table of frame offsets.

`zstdcat x.jsonl.zst | jq` still works. The table `x.frames.json` is what makes `records[i]` one small read, and what
makes a truncated file an error instead of a shorter corpus (zstd readers accept a cut file in silence).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import zstandard

from realmctl.errors import InputError

RECORDS_PER_FRAME = 1024
MAX_FRAME_BYTES = 2**30


def frames_path(path: Path) -> Path:
    """Where the frame table of `name.jsonl.zst` lies: `name.frames.json`."""
    return path.with_name(path.name.removesuffix(".jsonl.zst") + ".frames.json")


class RecordWriter:
    """Write JSON objects to `path` (`*.jsonl.zst`) in bounded memory. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        self._file = path.open("wb")
        self._compressor = zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=True)
        self._lines: list[bytes] = []
        self._offsets = [0]

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record."""
        self._lines.append(json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
        self.count += 1
        if len(self._lines) == RECORDS_PER_FRAME:
            self._flush()

    def _flush(self) -> None:
        if self._lines:
            frame = self._compressor.compress(b"\n".join(self._lines) + b"\n")
            self._file.write(frame)
            self._offsets.append(self._offsets[-1] + len(frame))
            self._lines = []

    def close(self) -> None:
        """Write the last frame and the frame table."""
        self._flush()
        self._file.close()
        table = {"records": self.count, "records_per_frame": RECORDS_PER_FRAME, "offsets": self._offsets}
        frames_path(self.path).write_text(json.dumps(table))

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()


class Records(Sequence[dict[str, Any]]):
    """Read what `RecordWriter` wrote, at random or in order, one frame in memory at a time.

    Raises InputError where the file does not hold what its table promises.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            table = json.loads(frames_path(path).read_text())
            self._count, self._per_frame, self._offsets = table["records"], table["records_per_frame"], table["offsets"]
            size = path.stat().st_size
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} cannot be read with its frame table: {error}. Make the artifact again.") from None
        if size != self._offsets[-1]:
            raise InputError(f"{path} has {size} bytes where its frame table says {self._offsets[-1]}: it was cut or changed.")
        self._frame, self._held = -1, list[dict[str, Any]]()

    def __len__(self) -> int:
        return int(self._count)

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
        if frame != self._frame:
            self._held, self._frame = self._read(frame), frame
        return self._held[place]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for frame in range(len(self._offsets) - 1):
            yield from self._read(frame)

    def _read(self, frame: int) -> list[dict[str, Any]]:
        start, stop = self._offsets[frame], self._offsets[frame + 1]
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                data = file.read(stop - start)
            if zstandard.frame_content_size(data) > MAX_FRAME_BYTES:
                raise ValueError("a frame claims more than 1 GiB")
            lines = zstandard.ZstdDecompressor().decompress(data, max_output_size=MAX_FRAME_BYTES).splitlines()
            return [json.loads(line) for line in lines]
        except (OSError, ValueError, zstandard.ZstdError) as error:
            raise InputError(f"{self.path}, frame {frame}: {error}. The file is damaged; make the artifact again.") from None
