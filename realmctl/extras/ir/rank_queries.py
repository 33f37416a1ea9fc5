"""Rank blocks, or documents, for the queries of a file. A document's place is that of its best block."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Writer
from realmctl.artifacts.description import RANKING, RankingDescription, write_description
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.execution.batches import batched
from realmctl.extras.ir.ranking.beir import qrels_file
from realmctl.extras.ir.ranking.judged import judged_alone
from realmctl.extras.ir.ranking.qrels import read_qrels
from realmctl.extras.ir.ranking.queries import read_queries
from realmctl.extras.ir.ranking.trec import TrecNames, run_lines
from realmctl.extras.ir.reranking import QUERIES_AT_ONCE as QUERIES_RERANKED_AT_ONCE
from realmctl.extras.ir.reranking import gains
from realmctl.extras.ir.settings import RankSettings
from realmctl.index.protocol import RowIds, Scores
from realmctl.log import progress, say, warn
from realmctl.questions.questions import Question
from realmctl.retrieval.search.block_search import BlockSearch, SearchInputs
from realmctl.retrieval.search.filters import filter_of, filtered
from realmctl.retrieval.search.methods import searchers_of, start_method
from realmctl.retrieval.search.profile import SearchProfile
from realmctl.retrieval.search.reranking import Reranking, found_reranker

QUERIES_AT_ONCE = 512
"""Queries whose blocks are looked up together. Each frame of records is then read once for all of them."""


@dataclass(frozen=True)
class RankedQuery:
    """A query with the ids of its blocks or documents, best first, and their scores, float32 [n], which do not rise."""

    query: Question
    names: list[str]
    scores: NDArray[np.float32]
    first: tuple[list[str], NDArray[np.float32]] | None = None
    """Where hits were reranked: names and scores before."""


@dataclass(frozen=True, kw_only=True)
class SearchedRanking(RankingDescription):
    """A ranking, with how it was searched. filter: which blocks could be found; empty for all."""

    search: SearchProfile
    filter: str = ""


def check_ranking(settings: RankSettings) -> None:
    """Raise ConfigError for options that do not suit each other, and what the searchers raise for inputs that they cannot use."""
    profile = _profile(settings)
    if settings.rerank is not None:
        found_reranker(settings.rerank)
    if settings.depth_of_search < settings.top:
        raise ConfigError(f"--depth {settings.depth} is below --top {settings.top}. Retrieve at least as many blocks.")
    if settings.filter:
        filter_of(settings.filter, Corpus(settings.blocks))
    for searcher in searchers_of(settings.method):
        searcher.check(dataclasses.replace(SearchInputs.of(settings), bm25_stemmer=profile.bm25_stemmer))


def write_ranking(settings: RankSettings, out: Writer) -> dict[str, float]:
    """Rank for the queries in a file, and write run.trec, queries.jsonl and ranking.json.

    Returns the numbers of queries, of hits, and of queries without hits; with a reranker and judgements also nDCG@10 before and after.
    """
    depth, index = settings.depth_of_search, settings.index
    if index is not None and (measured := index.metrics.get("recall_k", depth)) < depth:
        say(
            f"rank: the recall of {index.path} was measured for {measured} neighbours, and {depth} are searched. "
            f"Build it with --recall-k {depth} to know what it misses."
        )
    reranking = Reranking.of(settings.rerank, settings.rerank_depth, settings.device, settings.rerank_fused)
    profile = _profile(settings).reranked(reranking)
    searcher = start_method(profile, SearchInputs.of(settings))
    qrels = None if settings.qrels is None else qrels_file(settings.qrels, "test")
    judged = [] if qrels is None else [*judged_alone(settings.queries, qrels)]
    count = len(judged) or sum(1 for _ in read_queries(settings.queries))  # the whole file is read before any search
    counts: dict[str, float] = {"queries": count, "hits": 0, "without_hits": 0}
    with (
        out.file("run.trec").open("w", encoding="utf-8") as run,
        out.file("queries.jsonl").open("w", encoding="utf-8") as asked,
        (out.scratch("before") / "run.trec").open("w", encoding="utf-8") as before,
        progress(count, "searching", "queries") as bar,
    ):
        queries, documents = TrecNames(), TrecNames()
        all_asked = judged or read_queries(settings.queries)
        for ranked in ranked_queries(searcher, all_asked, settings, bar.advance, reranking):
            query, tag = queries(ranked.query.id), f"realmctl-{settings.method}{'-rerank' if reranking else ''}"
            run.writelines(run_lines(query, [documents(name) for name in ranked.names], ranked.scores, tag))
            if ranked.first:
                before.writelines(run_lines(query, *ranked.first, tag))
            record = {"id": ranked.query.id, "text": ranked.query.question}
            asked.write(json.dumps(record, ensure_ascii=False) + "\n")
            counts["hits"] += len(ranked.names)
            counts["without_hits"] += not ranked.names
    write_description(
        out.file(RANKING),
        SearchedRanking(unit=settings.unit, reranked=profile.rerank_depth, search=profile, filter=settings.filter),
    )
    if qrels is not None and reranking is not None:
        counts |= gains(qrels, out.scratch("before") / "run.trec", out.file("run.trec"))
    if qrels is not None and settings.unit == "document":
        of = read_qrels(qrels)
        relevant = {name for query in judged for name, grade in of[query.id].items() if grade > 0}
        if missing := searcher.corpus.lacking(relevant):
            warn(
                f"{len(missing):,} of {len(relevant):,} judged documents are not in {settings.blocks.path}, such as {min(missing)!r}. Measures count "
                "them as not found. If the documents have other ids in the blocks, name the field of these with chunk --id-field."
            )
    return counts


def ranked_queries(
    searcher: BlockSearch,
    queries: Iterable[Question],
    settings: RankSettings,
    on_progress: Callable[[int], None],
    reranking: Reranking | None = None,
) -> Iterator[RankedQuery]:
    """Yield the rankings in the order of the queries. A few hundred queries are in memory at a time.

    on_progress: called with the number of further queries that were searched. reranking: what reads the first blocks again; a document then has
    the best place of its blocks in the new order.
    """
    rest, among = iter(queries), filtered(settings.filter or None, searcher.corpus)
    while part := list(islice(rest, QUERIES_RERANKED_AT_ONCE if reranking else QUERIES_AT_ONCE)):
        found: list[tuple[Scores, RowIds]] = []
        for batch in batched(part, settings.batch_size):
            texts = [query.question for query in batch]
            found += searcher.ranked(searcher.tokens(texts), settings.depth_of_search, among)
            on_progress(0 if reranking else len(texts))
        blocks = searcher.corpus.blocks({row for _, rows in found for row in rows.tolist()})
        own = [[blocks[row] for row in rows.tolist()] for _, rows in found]
        named = [[block.id if settings.unit == "block" else block.document for block in each] for each in own]
        ranked = [_top(names, scores, settings.top) for names, (scores, _) in zip(named, found, strict=True)]
        if reranking is None:
            yield from (RankedQuery(query, *each) for query, each in zip(part, ranked, strict=True))
            continue
        first = [each[: reranking.depth] for each in own]
        scored = reranking.scores([query.question for query in part], first)
        on_progress(len(part))
        for query, names, (scores, _), new, before in zip(part, named, found, scored, ranked, strict=True):
            places, after = reranking.sorted_again(scores, new, scores / searcher.temperature)
            yield RankedQuery(query, *_top([names[place] for place in places.tolist()], after, settings.top), before)


def _top(names: list[str], scores: Scores, count: int) -> tuple[list[str], Scores]:
    """The first `count` different names of a ranking, and their scores."""
    first = {name: place for place, name in reversed([*enumerate(names)])}
    kept = sorted(first.values())[:count]
    return [names[place] for place in kept], scores[kept]


def _profile(settings: RankSettings) -> SearchProfile:
    return SearchProfile.of(
        settings.blocks,
        settings.method,
        retriever=settings.retriever,
        bm25_stemmer=settings.bm25_stemmer,
        bm25_tokens=settings.bm25_tokens,
        bm25_weight=settings.bm25_weight,
        fusion=settings.fusion,
        depth=settings.depth,
    )
