"""The documents of stored blocks, and what a revision changed in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import groupby

from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus


def stored_documents(corpus: Corpus) -> Iterator[tuple[Block, range]]:
    """Yield the first block of each document, and the rows of all its blocks, which are consecutive."""
    first, before = None, 0
    for row, block in enumerate(corpus):
        if first is None:
            first = block
        elif block.document != first.document:
            yield first, range(before, row)
            first, before = block, row
    if first is not None:
        yield first, range(before, len(corpus))


def by_document(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Group consecutive blocks of the same document."""
    for _, document in groupby(blocks, key=lambda block: block.document):
        yield list(document)


def documents_beginning_in(corpus: Corpus, start: int, stop: int) -> tuple[int, list[Block]]:
    """Return the row of the first document that begins in rows `start` to `stop`, and all blocks of such documents.

    So a map over ranges of rows receives each complete document once, wherever the ranges are cut.
    """
    stop = min(stop, len(corpus))
    first = next(_beginnings(corpus, start, stop), stop)
    last = next(_beginnings(corpus, stop, len(corpus)), len(corpus)) if first < stop else stop
    return first, [corpus.block(row) for row in range(first, last)]


def _beginnings(corpus: Corpus, start: int, stop: int) -> Iterator[int]:
    before = corpus.block(start - 1).document if start else None
    for row in range(start, stop):
        document = corpus.block(row).document
        if document != before:
            yield row
        before = document


class DocumentChanges:
    """Counts what happened to the documents of `former`, while the blocks of its next version are added.

    Two documents are equal if their id, title, texts and wordpieces are.
    """

    def __init__(self, former: Corpus) -> None:
        self._former: dict[str, hashlib.blake2b] = {}
        self._revised: dict[str, hashlib.blake2b] = {}
        self._uids = set(former.uid.tolist())
        self._blocks = self._kept = 0
        for row, block in enumerate(former):
            _update(self._former, block.document, int(former.uid[row]), block.wordpieces.title, block.wordpieces.body)

    def add(self, block: Block) -> None:
        """Count a block of the next version. The blocks of a document come in order."""
        uid = block.uid
        self._blocks += 1
        self._kept += uid in self._uids
        _update(self._revised, block.document, uid, block.wordpieces.title, block.wordpieces.body)

    def metrics(self) -> dict[str, int]:
        """Numbers of blocks and documents. `blocks_kept`: blocks whose title and text the former version has too."""
        both = self._former.keys() & self._revised.keys()
        changed = sum(self._former[name].digest() != self._revised[name].digest() for name in both)
        return {
            "blocks": self._blocks,
            "blocks_kept": self._kept,
            "documents": len(self._revised),
            "documents_added": len(self._revised) - len(both),
            "documents_changed": changed,
            "documents_removed": len(self._former) - len(both),
        }


def _update(digests: dict[str, hashlib.blake2b], name: str, uid: int, *pieces: bytes) -> None:
    digest = digests.setdefault(name, hashlib.blake2b(digest_size=16))
    for part in (uid.to_bytes(8, "little"), *pieces):
        digest.update(len(part).to_bytes(8, "little") + part)
