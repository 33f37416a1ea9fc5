"""Write the files of a blocks artifact in one pass and in constant memory.

blocks.jsonl.zst      one record for each block: id, document, title, text, sentences, anchors (character offsets), and section and page where it has one
tokens.npy            wordpiece ids of all bodies, one after the other, without [CLS] and [SEP]
offsets.npy           int64 [n + 1]; body i is tokens[offsets[i]:offsets[i + 1]]
title_tokens.npy      the same for titles, with title_offsets.npy
sentence_starts.npy   int32; where each sentence starts in its body, in wordpieces, with sentence_offsets.npy
uids.npy              uint64 [n]; see `Block.uid`
fields.json and others, where documents have fields: see fields.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from realmctl.artifacts.arrays import ArrayAppender
from realmctl.artifacts.records import RecordWriter
from realmctl.corpus.blocks import Block
from realmctl.corpus.fields_file import FieldsWriter

FIELDS = ("id", "document", "title", "text", "sentences", "anchors")
"""The fields of every record, in order."""


def record_of(block: Block) -> dict[str, object]:
    """Return the record of a block: all but its wordpieces."""
    record = {name: getattr(block, name) for name in FIELDS}
    return record | {name: value for name in ("section", "page") if (value := getattr(block, name))}


class BlocksWriter:
    """Writer of a blocks artifact, to be used as a context manager.

    Args:
        file: returns the path to write for the name of a file.
        dtype: type of the wordpiece ids (`Tokenizer.dtype`).
    """

    def __init__(self, file: Callable[[str], Path], dtype: DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._records = RecordWriter(file("blocks.jsonl.zst"))
        self._bodies = _Rows(file("tokens.npy"), file("offsets.npy"), dtype)
        self._titles = _Rows(file("title_tokens.npy"), file("title_offsets.npy"), dtype)
        self._sentences = _Rows(file("sentence_starts.npy"), file("sentence_offsets.npy"), np.int32)
        self._fields = FieldsWriter(file)
        self._uids = ArrayAppender(file("uids.npy"), np.uint64)

    @property
    def count(self) -> int:
        """The number of blocks written so far."""
        return self._records.count

    def write(self, block: Block) -> None:
        """Append one block."""
        pieces = block.wordpieces
        self._records.write(record_of(block))
        self._bodies.append(np.frombuffer(pieces.body, self._dtype))
        self._titles.append(np.frombuffer(pieces.title, self._dtype))
        self._sentences.append(pieces.sentence_starts)
        self._uids.append([block.uid])
        self._fields.add(block.document, block.fields)

    def __enter__(self) -> BlocksWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._records.__exit__(kind)
        self._fields.close(kind)
        for part in (self._bodies, self._titles, self._sentences, self._uids):
            part.close()


class _Rows:
    """Rows of different lengths, one after the other, with int64 [n + 1] offsets."""

    def __init__(self, values: Path, offsets: Path, dtype: DTypeLike) -> None:
        self._values, self._offsets = ArrayAppender(values, dtype), ArrayAppender(offsets, np.int64)
        self._end = 0
        self._offsets.append([0])

    def append(self, row: ArrayLike) -> None:
        row = np.asarray(row)
        self._values.append(row)
        self._end += len(row)
        self._offsets.append([self._end])

    def close(self) -> None:
        self._values.close()
        self._offsets.close()
