"""The files of a spans artifact, written one sentence at a time: what they hold is settled here and nowhere
else.

sentences.jsonl.zst   block (row), id, title, sentence (number), text, spans [[start, end, label]] in
characters tokens.npy            wordpiece ids of all sentences end to end, no specials, uint16 (uint32 for
65,536 or more) offsets.npy           int64 [n + 1]: sentence i is tokens[offsets[i]:offsets[i + 1]] uids.npy
uint64 [n]: uid of the block that sentence i is from spans.npy             int32 [S, 4]: (sentence, first
token, last token + 1, label id), sorted by sentence labels.json           names of the label ids, in order of
first appearance
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from realmctl.records import RecordWriter


class SpansWriter:
    """Write the files above with constant memory. `file` maps a file's name to the path to write. A context
    manager.
    """

    def __init__(self, file: Callable[[str], Path], vocabulary_size: int) -> None:
        self._sentences = RecordWriter(file("sentences.jsonl.zst"))
        self._tokens = ArrayAppender(file("tokens.npy"), np.uint16 if vocabulary_size < 65536 else np.uint32)
        self._offsets = ArrayAppender(file("offsets.npy"), np.int64)
        self._uids = ArrayAppender(file("uids.npy"), np.uint64)
        self._spans = ArrayAppender(file("spans.npy"), np.int32, columns=4)
        self._labels_path = file("labels.json")
        self._label_ids: dict[str, int] = {}
        self._end = 0
        self._offsets.append([0])

    def write(
        self, record: Mapping[str, Any], uid: int, tokens: Sequence[int], places: Sequence[tuple[int, int]]
    ) -> None:
        """Append a sentence: its record, its block's uid, its wordpieces, and the wordpieces of each of its
        spans.
        """
        labels = [self._label_ids.setdefault(label, len(self._label_ids)) for _, _, label in record["spans"]]
        row = self._sentences.count
        self._spans.append(
            [(row, first, stop, label) for (first, stop), label in zip(places, labels, strict=True)]
        )
        self._sentences.write(record)
        self._tokens.append(tokens)
        self._end += len(tokens)
        self._offsets.append([self._end])
        self._uids.append([uid])

    def __enter__(self) -> SpansWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sentences.__exit__(kind, error, trace)
        for array in (self._tokens, self._offsets, self._uids, self._spans):
            array.close()
        self._labels_path.write_text(json.dumps(list(self._label_ids)))


class ArrayAppender:
    """A `.npy` file that grows by rows: the header is written again at the end, when the length is known."""

    def __init__(self, path: Path, dtype: DTypeLike, columns: int | None = None) -> None:
        self._file, self._dtype, self._columns = path.open("wb"), np.dtype(dtype), columns
        self._rows = 0
        self._write_header()

    def append(self, rows: Sequence[Any]) -> None:
        """Add rows: numbers, or tuples of `columns` numbers."""
        self._file.write(np.asarray(rows, self._dtype).tobytes())
        self._rows += len(rows)

    def close(self) -> None:
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        shape = (self._rows,) if self._columns is None else (self._rows, self._columns)
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(
            self._file, header
        )  # padded by numpy so that a longer shape still fits
