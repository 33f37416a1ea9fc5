"""Text search: questions in, retrieved blocks out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from realmctl.artifacts import Artifact
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import ConfigError
from realmctl.execution.batches import batched
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index, RowIds, Scores
from realmctl.retrieval.search.block_search import BlockSearch, Hit, require_count
from realmctl.retrieval.search.filters import filtered
from realmctl.retrieval.search.profile import SearchProfile
from realmctl.retrieval.search.reranking import Reranking

QUESTIONS_AT_ONCE = 16
AS_DEEP = 64
"""So many times the hits that are asked for are looked at, to find as many with different texts."""


class TextSearch:
    """Blocks and what finds them: dense retrieval, BM25, both fused (hybrid), or the searcher of a plug-in.

    `blocks` are the texts. `profile` says how they are searched; it is None for the search of a model. `reranking`, if any, reads the
    first hits and sorts them by its scores.
    """

    reranking: Reranking | None = None

    def __init__(self, searcher: BlockSearch | None, blocks: Corpus, profile: SearchProfile | None = None) -> None:
        self.blocks, self._searcher, self.profile = blocks, searcher, profile

    @property
    def searcher(self) -> BlockSearch:
        """The searcher. Raises ConfigError for a model that retrieves no blocks."""
        if self._searcher is None:
            raise ConfigError(
                f"{self} was fine-tuned with --retrieval none and retrieves no blocks. Load a model that was fine-tuned with "
                "retrieval."
            )
        return self._searcher

    def over(self, blocks: Artifact, index: Artifact | None, opener: Callable[[Path, str], Index] = open_index) -> Self:
        """Return the same search over other blocks. Both share their weights in memory; see `BlockSearch.over`."""
        other = copy.copy(self)
        other._searcher = self.searcher.over(blocks, index, opener)
        other.blocks = other._searcher.corpus
        return other

    def search(self, question: str, k: int = 5, filter: str | Sequence[str] | None = None) -> list[Hit]:
        """Return the k best blocks for a question, best first; fewer when there are no more, or BM25 finds no more that share a word.

        Blocks of the same text are one hit, that of the best, and of equally good ones that of the first row; see `Hit.copies`.

        filter: which blocks may be hits, by the fields of their documents (`realmctl.extras.filters`); of several, those that pass all.

        Raises:
            ConfigError: the question is empty, k is below 1, the filter is none of these blocks, or the model retrieves no blocks.

        Examples:
            >>> for hit in model.search("Who wrote it?", k=5, filter='date >= 2024 and source == "handbook"'):
            ...     print(hit.score, hit.block.title, hit.block.fields, hit.block.text)
        """
        return self.search_together([question], k, filter)[0]

    def search_together(
        self, questions: Sequence[str], k: int = 5, filter: str | Sequence[str] | None = None
    ) -> list[list[Hit]]:
        """Return for each question what `search` returns. All are embedded and looked up at once. Raises what `search` raises."""
        require_questions(questions, "k", k)
        among = filtered(filter, self.searcher.corpus)
        if self.reranking is None:
            return self._found(questions, k, among)
        first = self._found(questions, max(k, self.reranking.depth), among)
        return [own[:k] for own in self.reranking.hits(questions, first)]

    def _found(self, questions: Sequence[str], k: int, among: RowIds | None) -> list[list[Hit]]:
        tokens, width = self.searcher.tokens(questions), k
        while True:
            ranked = self.searcher.ranked(tokens, width, among)
            shown = [self._different(rows, k, among) for _, rows in ranked]
            if width >= AS_DEEP * k or all(
                len(own) == k or len(rows) < width for own, (_, rows) in zip(shown, ranked, strict=True)
            ):
                break
            width *= 4  # copies took the places of other blocks
        found = self.searcher.hits(
            [scores[[place for place, *_ in own]] for own, (scores, _) in zip(shown, ranked, strict=True)],
            [np.array([row for _, row, _ in own], np.int64) for own in shown],
        )
        return [
            [replace(hit, copies=(*copies,)) if copies else hit for hit, (*_, copies) in zip(hits, own, strict=True)]
            for hits, own in zip(found, shown, strict=True)
        ]

    def _different(self, rows: RowIds, k: int, among: RowIds | None) -> list[tuple[int, int, list[Block]]]:
        """Of the first k blocks with different texts in a ranking: the place of each, the row that is shown, and the others of its text."""
        found = dict[str, tuple[int, int, list[Block]]]()
        for start in range(0, len(rows), k):
            part = rows[start : start + k].tolist()
            blocks = self.searcher.corpus.blocks(set(part))
            for place, row in enumerate(part, start):
                text = " ".join(blocks[row].text.split())
                if text not in found and len(found) < k:
                    found[text] = place, self._first(row, among), []
                if text in found and row != found[text][1]:
                    found[text][2].append(blocks[row])
            if len(found) == k:
                break
        return [*found.values()]

    def _first(self, row: int, among: RowIds | None) -> int:
        """The first row with the title and the text of a block: equal blocks have one score, and which of them an index finds is chance."""
        uid = self.searcher.corpus.uid
        equal = np.flatnonzero(uid[: row + 1] == uid[row])
        return int((equal if among is None else equal[np.isin(equal, among)])[0])

    def search_batch(
        self, questions: Sequence[str], k: int = 5, filter: str | Sequence[str] | None = None
    ) -> tuple[Scores, RowIds]:
        """Return scores float32 [n, k] and rows int64 [n, k] of the k best blocks for each of n questions, best first and not reranked.

        k is at most the number of blocks, or of those that pass `filter`, which is as of `search`. `blocks[row]` is the block in a row. With a filter
        BM25 may find fewer that share a word with a question: then the last rows are -1, with scores of -inf.

        Raises:
            ConfigError: a question is empty, k is below 1, the filter is none of these blocks, or the model retrieves no blocks.
        """
        require_questions(questions, "k", k)
        among = filtered(filter, self.blocks)
        width = min(k, len(self.blocks) if among is None else len(among))
        found = [(np.empty((0, width), np.float32), np.empty((0, width), np.int64))]
        for batch in batched(questions, QUESTIONS_AT_ONCE):
            tokens = self.searcher.tokens(batch)
            found.append(self.searcher.nearest(tokens, k) if among is None else self._padded(tokens, width, among))
        scores, rows = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return scores, rows

    def _padded(self, tokens: list[TokenIds], width: int, among: RowIds) -> tuple[Scores, RowIds]:
        scores = np.full((len(tokens), width), -np.inf, np.float32)
        rows = np.full((len(tokens), width), -1, np.int64)
        for own, (its_scores, its_rows) in enumerate(self.searcher.ranked(tokens, width, among) if width else ()):
            count = min(width, len(its_rows))
            scores[own, :count], rows[own, :count] = its_scores[:count], its_rows[:count]
        return scores, rows

    def __repr__(self) -> str:
        return f"<text search over {self.blocks!r}>"


def require_questions(questions: Sequence[str], name: str, count: int) -> None:
    """Raise ConfigError for an empty question, for what is no list of texts, or for a count below 1."""
    require_texts(questions)
    if empty := [number for number, question in enumerate(questions, 1) if not question.strip()]:
        raise ConfigError(f"Question {empty[0]} of {len(questions)} is empty. Remove it, or write a question.")
    require_count(name, count)


def require_texts(texts: Sequence[str]) -> None:
    """Raise ConfigError for what is no list, such as one string or a generator, which can be read once, and for what is not a text that UTF-8 can write."""
    if isinstance(texts, str):
        raise ConfigError(f"A batch is a list of texts, not the one string {texts[:80]!r}. Put it in a list.")
    if not (hasattr(texts, "__len__") and hasattr(texts, "__getitem__")):
        raise ConfigError(f"A batch is a list of texts, not {texts!r}. Make it one: list(texts).")
    for text in texts:
        if not isinstance(text, str):
            raise ConfigError(f"A question or a text is a str, not {str(text)[:80]!r} ({type(text).__name__}).")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ConfigError(
                f"A text has half a surrogate pair at character {error.start}, as bytes become that are not UTF-8. Remove it: {text[:80]!r}."
            ) from None
