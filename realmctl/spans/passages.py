"""The blocks of a blocks artifact in the form that taggers read, and their grouping by document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple


class LinkAnchor(NamedTuple):
    """A link: character offsets of its label, and the title of the page that it points to."""

    start: int
    end: int
    target: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A block without its wordpieces. All offsets count characters of `text`."""

    id: str
    document: str
    title: str
    text: str
    sentences: tuple[tuple[int, int], ...]
    anchors: tuple[LinkAnchor, ...] = ()

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Passage:
        """Return the passage of one record of blocks.jsonl.zst."""
        return cls(
            id=record["id"],
            document=record["document"],
            title=record["title"],
            text=record["text"],
            sentences=tuple((start, end) for start, end in record["sentences"]),
            anchors=tuple(LinkAnchor(*anchor) for anchor in record["anchors"]),
        )

    def sentence_texts(self) -> list[str]:
        """Return the text of each sentence."""
        return [self.text[start:end] for start, end in self.sentences]


def by_document(passages: Iterable[Passage]) -> Iterator[list[Passage]]:
    """Group consecutive passages of the same document."""
    for _, document in groupby(passages, key=lambda passage: passage.document):
        yield list(document)


def documents_beginning_in(records: Sequence[Mapping[str, Any]], start: int, stop: int) -> tuple[int, list[Passage]]:
    """Return the row of the first document that begins in rows `start` to `stop`, and all passages of such documents.

    So a map over ranges of rows receives each complete document once, wherever the ranges are cut.
    """
    stop = min(stop, len(records))
    first = next(_beginnings(records, start, stop), stop)
    last = next(_beginnings(records, stop, len(records)), len(records)) if first < stop else stop
    return first, [Passage.from_record(records[row]) for row in range(first, last)]


def _beginnings(records: Sequence[Mapping[str, Any]], start: int, stop: int) -> Iterator[int]:
    before = records[start - 1]["document"] if start else None
    for row in range(start, stop):
        document = records[row]["document"]
        if document != before:
            yield row
        before = document
