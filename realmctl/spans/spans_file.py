"""Write the files of a spans artifact, one sentence at a time and in constant memory.

sentences.jsonl.zst: block (its row), id, title, sentence (its number), text, spans [[start, end, label]]
tokens.npy: wordpiece ids of all sentences, one after the other, without special tokens
offsets.npy: int64 [n + 1]; sentence i is tokens[offsets[i]:offsets[i + 1]]
uids.npy: uint64 [n]; the uid of the block that contains sentence i
spans.npy: int32 [S, 4]; (sentence, first token, last token + 1, label id), sorted by sentence
labels.json: the names of the label ids, in order of first appearance
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from realmctl.artifacts.arrays import ArrayAppender
from realmctl.artifacts.records import RecordWriter
from realmctl.spans.tagged_sentences import TaggedSentence


class SpansWriter:
    """Writer of a spans artifact, to be used as a context manager.

    Args:
        file: returns the path to write for the name of a file.
        dtype: type of the wordpiece ids.
    """

    def __init__(self, file: Callable[[str], Path], dtype: DTypeLike) -> None:
        self._sentences = RecordWriter(file("sentences.jsonl.zst"))
        self._tokens = ArrayAppender(file("tokens.npy"), dtype)
        self._offsets = ArrayAppender(file("offsets.npy"), np.int64)
        self._uids = ArrayAppender(file("uids.npy"), np.uint64)
        self._spans = ArrayAppender(file("spans.npy"), np.int32, columns=4)
        self._labels_path = file("labels.json")
        self._label_ids: dict[str, int] = {}
        self._end = 0
        self._offsets.append([0])

    def write(self, sentence: TaggedSentence, uid: int) -> None:
        """Append a sentence. `uid` is that of its block."""
        row = self._sentences.count
        for span, (first, stop) in zip(sentence.spans, sentence.token_spans, strict=True):
            label = self._label_ids.setdefault(span.label, len(self._label_ids))
            self._spans.append([(row, first, stop, label)])
        self._sentences.write(sentence.record())
        self._tokens.append(sentence.tokens)
        self._end += len(sentence.tokens)
        self._offsets.append([self._end])
        self._uids.append([uid])

    def __enter__(self) -> SpansWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._sentences.__exit__(kind)
        for array in (self._tokens, self._offsets, self._uids, self._spans):
            array.close()
        self._labels_path.write_text(json.dumps(list(self._label_ids)))
