"""Recurring span retrieval: find the other block that shares a span with the query (Spider; Ram et al., NAACL 2022, section 3).

Two blocks of one document that share a recurring span are a pair. A third block of the document without the span is the hard
negative. The query is a window of the first block about the span, with the span or without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Writer
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import InputError
from realmctl.lab.spider.recurring_spans import LONGEST, SpanPlaces, WordTable, recurring_spans
from realmctl.lab.spider.settings import SpiderSettings
from realmctl.log import progress
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.own_blocks import rows_by_document
from realmctl.training.in_batch import Example, InBatchContrast, train_retriever

T = TypeVar("T")
KEEP_RATE = 0.5
"""Share of the queries that keep the span, as in the paper and the public code."""
SHORTEST_WINDOW = 5
"""Fewest wordpieces of a query (public code oriram/spider, the default of --min_window_size)."""
REMEMBERED = 65_536
"""Documents whose spans are kept in memory."""
DRAWS = 8
"""Random numbers of an example."""


class SpiderObjective(InBatchContrast):
    """Each document with a recurring span gives a pair and a hard negative. All blocks of the batch are negatives.

    A document is usable if two of its blocks share a span that a third one lacks. The paper's batch may have several spans of
    one document; here a batch has a document once, unless it begins in one pass over
    them and ends in the next.

    Raises:
        InputError: Fewer than two documents are usable.
        ConfigError: The batch cannot be divided among the processes.
    """

    blocks_each = 2

    def __init__(self, retriever: Retriever, corpus: Corpus, collator: Collator, settings: SpiderSettings) -> None:
        self.corpus, self.window = corpus, settings.window
        self.short_spans = "short-spans" in settings.official
        documents = rows_by_document(corpus, settings.group_by)
        self.words = WordTable(corpus, Tokenizer.load(corpus.artifact.path), documents)
        self.documents = [rows for rows in documents if len(rows) > 2]
        self.spans = lru_cache(REMEMBERED)(self._spans)
        self.usable = self._documents_with_spans()
        if len(self.usable) < 2:
            raise InputError(
                f"{corpus.artifact} has {len(self.usable)} documents with a recurring span, and spider-init needs at least 2. "
                "Two blocks of the document must share rare words, and a third block must lack them. If the documents are passages, "
                "use --group-by title or --group-by source. Or chunk longer documents, use a smaller --max-wordpieces, or use ict-init."
            )
        super().__init__(retriever, collator, settings, count=len(self.usable))

    def _documents_with_spans(self) -> list[int]:
        usable = []
        with progress(len(self.documents), "finding recurring spans", "documents") as bar:
            for number in range(len(self.documents)):
                if self.spans(number):
                    usable.append(number)
                bar.advance()
        return usable

    def _spans(self, number: int) -> list[SpanPlaces]:
        """The recurring spans of a document that at least one of its blocks lacks."""
        rows = self.documents[number]
        blocks = [self.words.words(self.corpus.tokens(int(row))) for row in rows]
        if self.short_spans:
            found = recurring_spans([words.without_last() for words in blocks], self.words.common, LONGEST - 1)
        else:
            found = recurring_spans(blocks, self.words.common)
        return [places for places in found if len({block for block, _, _ in places}) < len(rows)]

    def examples(self, step: int) -> list[Example]:
        """The text of the other processes' documents is not read."""
        draws = generator(self.settings.seed, Stream.RECURRING_SPANS, step).random((self.order.batch_size, DRAWS))
        numbers = self.order.batch(step)
        return [self._example(self.usable[numbers[at]], draws[at]) for at in range(self.own.start, self.own.stop)]

    def _example(self, number: int, draws: NDArray[np.float64]) -> Example:
        rows, spans = self.documents[number], self.spans(number)
        places = _chosen(spans, draws[0])
        holding = sorted({each for each, _, _ in places})
        block = _chosen(holding, draws[1])
        _, start, stop = _chosen([place for place in places if place[0] == block], draws[2])
        positive = _chosen([each for each in holding if each != block], draws[3])
        negative = _chosen([each for each in range(len(rows)) if each not in holding], draws[4])
        query, kept = self._query(self.corpus.tokens(int(rows[block])), start, stop, draws[5:])
        blocks = tuple(
            (self.corpus.title(int(rows[each])), self.corpus.tokens(int(rows[each]))) for each in (positive, negative)
        )
        names = tuple(self.corpus.uid[rows[[positive, negative]]].tolist())
        return Example(query, blocks, names, {"kept": kept})

    def _query(self, body: TokenIds, start: int, stop: int, draws: NDArray[np.float64]) -> tuple[TokenIds, bool]:
        """A window about the span body[start:stop], and whether the span was kept. A block that is only the span keeps it.

        As in the public code (query_transformations.py), the window's length is drawn, and then where it begins: from its own
        length before the span up to the span's end. So a window that keeps the span may hold a part of it, or stand behind it.
        """
        beside = len(body) - (stop - start)
        length = min(SHORTEST_WINDOW + int(draws[0] * (self.window - SHORTEST_WINDOW + 1)), beside)
        first, last = max(0, start - length), min(stop, beside - length)
        begin = first + int(draws[1] * (last - first + 1))
        if not length:
            return body, True
        if draws[2] < KEEP_RATE:
            return body[begin : begin + length], True
        left = body[begin:start]
        return np.concatenate([left, body[stop : stop + length - len(left)]]), False


def _chosen(items: Sequence[T], draw: float) -> T:
    """The item at a random number from 0 up to 1."""
    return items[int(draw * len(items))]


def train_spider(settings: SpiderSettings, out: Writer) -> dict[str, float]:
    """Train a retriever on recurring spans, and write it. Returns metrics."""
    return train_retriever(settings, out, "spider-init", SpiderObjective)
