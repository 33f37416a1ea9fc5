"""Rank blocks, or documents, for the queries of a file. A document's place is that of its best block."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Writer
from realmctl.artifacts.description import RANKING, RankingDescription, write_description
from realmctl.index.protocol import RowIds, Scores
from realmctl.log import progress
from realmctl.questions.questions import Question
from realmctl.questions.ranking.queries import read_queries
from realmctl.questions.ranking.trec import run_lines
from realmctl.retrieval.search.searcher import BlockSearch

RankedUnit = Literal["block", "document"]
QUERIES_AT_ONCE = 512
"""Queries whose blocks are looked up together. Each frame of records is then read once for all of them."""


@dataclass(frozen=True)
class RankedQuery:
    """A query with the ids of its blocks or documents, best first, and their scores, float32 [n], which do not rise."""

    query: Question
    names: list[str]
    scores: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Ranker:
    """Ranks blocks or documents.

    searcher: what finds blocks. top: number of blocks or documents of a query. depth: number of blocks that a searcher
    retrieves. unit: what is ranked.
    """

    searcher: BlockSearch
    top: int
    depth: int
    unit: RankedUnit = "block"
    batch_size: int = 16

    def write(self, queries: Path, out: Writer, tag: str) -> dict[str, int]:
        """Rank for the queries in a file, and write run.trec, queries.jsonl and ranking.json.

        Returns the numbers of queries, of hits, and of queries without hits. `tag` names the run in run.trec.
        """
        count = sum(1 for _ in read_queries(queries))  # reads the whole file before any search
        counts = {"queries": count, "hits": 0, "without_hits": 0}
        with (
            out.file("run.trec").open("w", encoding="utf-8") as run,
            out.file("queries.jsonl").open("w", encoding="utf-8") as asked,
            progress(count, "searching", "queries") as bar,
        ):
            for ranked in self.rank(read_queries(queries), bar.advance):
                run.writelines(run_lines(ranked.query.id, ranked.names, ranked.scores, tag))
                record = {"id": ranked.query.id, "text": ranked.query.question}
                asked.write(json.dumps(record, ensure_ascii=False) + "\n")
                counts["hits"] += len(ranked.names)
                counts["without_hits"] += not ranked.names
        write_description(out.file(RANKING), RankingDescription(unit=self.unit))
        return counts

    def rank(self, queries: Iterable[Question], on_progress: Callable[[int], None]) -> Iterator[RankedQuery]:
        """Yield the rankings in the order of the queries. A few hundred queries are in memory at a time.

        on_progress: called with the number of further queries that were searched.
        """
        rest = iter(queries)
        while part := list(islice(rest, QUERIES_AT_ONCE)):
            found: list[tuple[Scores, RowIds]] = []
            for start in range(0, len(part), self.batch_size):
                texts = [query.question for query in part[start : start + self.batch_size]]
                found += self.searcher.ranked(self.searcher.tokens(texts), self.depth)
                on_progress(len(texts))
            blocks = self.searcher.corpus.blocks({row for _, rows in found for row in rows.tolist()})
            for query, (scores, rows) in zip(part, found, strict=True):
                own_blocks = [blocks[row] for row in rows.tolist()]
                names = [block.id if self.unit == "block" else block.document for block in own_blocks]
                first = {name: place for place, name in reversed([*enumerate(names)])}
                kept = sorted(first.values())[: self.top]
                yield RankedQuery(query, [names[place] for place in kept], scores[kept])
