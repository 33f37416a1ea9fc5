"""Samples of a corpus: the first documents of its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from realmctl.artifacts.hashing import entries_below
from realmctl.errors import InputError
from realmctl.inputs.streams import decompressed

MOST_FILES = 64
HEAD_BYTES = 4 * 2**20
"""Bytes of a file, as it is stored, from which its expansion is measured."""
LEAST_BYTES = 65_536
SAMPLE_BYTES = 2_000_000


@dataclass(frozen=True)
class Sample:
    """Files of a sample, their bytes, and the bytes of the whole corpus; all decompressed."""

    files: tuple[Path, ...]
    nbytes: float
    corpus_bytes: float

    @property
    def times(self) -> float:
        """How many times as large as the sample the corpus is."""
        return max(1.0, self.corpus_bytes / self.nbytes) if self.nbytes else 1.0


def sample_of(corpus: Sequence[Path], folder: Path, most: int = SAMPLE_BYTES) -> Sample:
    """Copy the first documents of a corpus into a new folder.

    A dump is cut behind a page, another text behind a line. A JSON document of many lines, and a file that is no text, is taken whole.

    Args:
        corpus: Files and folders.
        folder: A folder that does not exist yet. It gets one file for each file that is sampled.
        most: Bytes of the sample, decompressed. They are divided evenly among at most 64 files.

    Raises:
        InputError: a file is damaged, or its first document is too long for a sample.
    """
    folder.mkdir(parents=True)
    files = list[Path]()
    for path in map(Path, corpus):
        files += [path] if path.is_file() else [entry for entry, why in entries_below(path) if not why]
    chosen = files[:: -(-len(files) // MOST_FILES)] if files else []
    parts, sampled, whole, stored = [], 0.0, 0.0, 0
    for number, file in enumerate(chosen):
        data, expansion = _head(file, folder / "head")
        size = file.stat().st_size
        stored += size
        whole += size * expansion
        if b"\0" in data:  # no text: one document
            data = file.read_bytes()
        elif len(data) > (part_of := max(most // len(chosen), LEAST_BYTES)) or size > HEAD_BYTES:
            data = _cut(data[:part_of], file)
        part = folder / f"{number:03}-{file.name}"
        part.write_bytes(data)
        parts.append(part)
        sampled += len(data)
    every = sum(file.stat().st_size for file in files)
    return Sample(tuple(parts), sampled, whole * every / stored if stored else 0.0)


def _head(file: Path, copy: Path) -> tuple[bytes, float]:
    """The start of a file, decompressed, and how many bytes a stored byte becomes."""
    with file.open("rb") as stream:
        stored = stream.read(HEAD_BYTES)
    if len(stored) < HEAD_BYTES:
        data = b"".join(decompressed(file))
        return data, len(data) / max(1, len(stored))
    copy.write_bytes(stored)
    pieces = []
    try:
        for piece in decompressed(copy):
            pieces.append(piece)
    except InputError:  # the copy ends within a compressed stream
        if not pieces:
            raise
    copy.unlink()
    data = b"".join(pieces)
    return data, len(data) / len(stored)


def _cut(data: bytes, file: Path) -> bytes:
    if b"<mediawiki" in data[:4096]:
        end = data.rfind(b"</page>")
        if end > 0:
            return data[: end + len(b"</page>")] + b"\n</mediawiki>\n"
    elif (end := data.rfind(b"\n")) > 0 and not data.lstrip().startswith((b"[", b'{"data"', b"{\n")):
        return data[: end + 1]
    raise InputError(
        f"{file} cannot be sampled: no document ends within its first {len(data):,} bytes, or it is one JSON document. Write a "
        "part of it into a file of its own, and name that."
    )
