"""A spans artifact, opened for training: sentences in wordpieces, their salient spans, and the blocks they come from."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.artifacts.arrays import Ragged, open_array
from realmctl.artifacts.records import Records
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import InputError
from realmctl.log import say
from realmctl.spans.masking import Masking
from realmctl.spans.query import HiddenText, Query, hide
from realmctl.tokens.frame import AROUND_ONE


class Queries(Protocol):
    """What is hidden and asked for, by number. own_uid: the uid of the block that holds each query's text, uint64 [sentences]."""

    own_uid: NDArray[np.uint64]

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    @property
    def query_length(self) -> int:
        """Longest query in wordpieces, special ones included."""
        ...

    def query(self, number: int, mask_id: int, masking: Masking, rng: np.random.Generator) -> Query:
        """Return query `number`, hidden as `masking` says."""
        ...

    def text(self, query: Query) -> HiddenText:
        """Return a query as text of which a part is hidden."""
        ...


class TaggedQueries:
    """Sentences with salient spans, by row.

    uid: the block that each sentence was tagged in, uint64 [n]. own_uid: the block of `corpus` that holds it, so that it is no candidate.

    Args:
        spans: what `tag` made.
        corpus: the blocks that are retrieved. They may be cut otherwise than the tagged ones, or be other documents.

    Raises:
        InputError: the arrays of the artifact disagree.
    """

    def __init__(self, spans: Artifact, corpus: Corpus | None = None) -> None:
        self.artifact = spans
        self._tokens = Ragged(spans.file("tokens.npy"), spans.file("offsets.npy"))
        self.spans: NDArray[np.int32] = open_array(spans.file("spans.npy"))
        self.uid: NDArray[np.uint64] = open_array(spans.file("uids.npy"))
        if not self._agree():
            raise InputError(f"{spans}: its arrays disagree, or it holds no span. Tag the blocks again.")
        self.own_uid = self.uid if corpus is None else self._held_by(corpus)

    def _agree(self) -> bool:
        """Whether there is a uid for each sentence, and each span lies in a sentence; spans are ordered by sentence."""
        if self.uid.shape != (len(self),) or self.spans.dtype.kind != "i" or self.spans.shape != (len(self.spans), 4):
            return False
        if len(self.spans) == 0 or self.spans[0, 0] < 0 or self.spans[-1, 0] >= len(self):
            return False
        sentence, first, stop = (self.spans[:, column] for column in range(3))
        if (sentence[1:] < sentence[:-1]).any():
            return False
        return bool(((first >= 0) & (first < stop) & (stop <= self._tokens.lengths[sentence])).all())

    def _held_by(self, corpus: Corpus) -> NDArray[np.uint64]:
        """`uid`, and where `corpus` lacks that block the one with the same sentence, in wordpieces; of several one with its title, or the first."""
        elsewhere = np.flatnonzero(~np.isin(self.uid, corpus.uid)).tolist()
        if not elsewhere:
            return self.uid
        holders: dict[bytes, list[int]] = {self.tokens(row).tobytes(): [] for row in elsewhere}
        for block in range(len(corpus)):
            body = corpus.tokens(block).astype(self.dtype)
            for start, stop in pairwise([*corpus.sentences(block).tolist(), len(body)]):
                if (held := holders.get(body[start:stop].tobytes())) is not None:
                    held.append(block)
        own_uid, found = np.array(self.uid), 0
        for row in elsewhere:
            if held := holders[self.tokens(row).tobytes()]:
                title = self.records[row]["title"] if len(held) > 1 else ""
                named = (block for block in held if title and corpus[block].title == title)
                own_uid[row], found = corpus.uid[next(named, held[0])], found + 1
        if found:
            say(
                f"{found:,} sentences of {self.artifact} stand in {corpus.artifact} too, in blocks that are cut otherwise. "
                "Such a block is no candidate for its sentence."
            )
        return own_uid

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Integer type of the wordpieces."""
        return self._tokens.values.dtype

    @property
    def count(self) -> int:
        """Number of salient spans."""
        return len(self.spans)

    @property
    def query_length(self) -> int:
        """Longest query in wordpieces, [CLS] and [SEP] included, as `tag` decided."""
        return int(self.artifact.settings.get("query_length", 96))

    @property
    def max_masks(self) -> int:
        """Longest span in wordpieces, as `tag` decided."""
        return int(self.artifact.settings.get("max_masks", 10))

    def tokens(self, row: int) -> TokenIds:
        """Wordpieces of the sentence, without special tokens."""
        return self._tokens[row]

    @cached_property
    def span_offsets(self) -> NDArray[np.int64]:
        """Offsets into `spans`, int64 [n + 1]: `spans[span_offsets[i]:span_offsets[i + 1]]` belong to sentence i."""
        return np.searchsorted(self.spans[:, 0], np.arange(len(self) + 1))

    def spans_of(self, row: int) -> NDArray[np.int32]:
        """First and last + 1 wordpiece of each span of a sentence, int32 [S, 2]."""
        return self.spans[self.span_offsets[row] : self.span_offsets[row + 1], 1:3]

    def query(self, number: int, mask_id: int, masking: Masking, rng: np.random.Generator) -> Query:
        """Return the sentence of a salient span as a query, cut to `query_length`: REALM's masks (section 3.4 and table 2).

        All of a long span is hidden and its first `max_masks` wordpieces are asked for, as in the official code.
        """
        sentence, first, stop, _ = self.spans[number].tolist()
        tokens = self.tokens(sentence)[: self.query_length - AROUND_ONE]
        places = masking.hidden(tokens, (first, stop), self.max_masks, rng)
        whole = hide(tokens, places, mask_id)
        return Query(whole.tokens, whole.places[: self.max_masks], whole.targets[: self.max_masks], sentence)

    def text(self, query: Query) -> HiddenText:
        """Return the sentence of a query that hides a salient span as text; the whole span is hidden."""
        record, (first_S, stop_S) = self.records[query.sentence], self.spans_of(query.sentence).T
        fits_S = (first_S == query.places[0]) & (np.minimum(stop_S - first_S, self.max_masks) == len(query.places))
        return HiddenText.of(record["text"], *record["spans"][int(fits_S.argmax())][:2])

    @cached_property
    def records(self) -> Records:
        """The records that `tag` wrote: texts and labels."""
        return Records(self.artifact.file("sentences.jsonl.zst"))
