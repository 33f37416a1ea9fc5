"""Rankings whose first hits a reranker puts into another order, and how much that helped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact, Writer
from realmctl.artifacts.description import RANKING, RankingDescription, read_description, write_description
from realmctl.artifacts.hashing import read_sealed, write_sealed
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.extras.ir.ranking.beir import qrels_file
from realmctl.extras.ir.ranking.qrels import read_qrels
from realmctl.extras.ir.ranking.trec import Relevance, read_run, run_lines, trec_name, trec_named
from realmctl.index.protocol import Scores
from realmctl.log import progress, warn
from realmctl.retrieval.search.methods import temperature_of
from realmctl.retrieval.search.profile import SearchProfile
from realmctl.retrieval.search.reranking import Reranking

QUERIES_AT_ONCE = 32
"""Queries whose hits are read together: those of like length stand in one batch."""
MEASURE = "nDCG@10"


@dataclass(frozen=True, kw_only=True)
class FirstRanking(RankingDescription):
    """A ranking, with how it was searched. None: it is not told."""

    search: SearchProfile | None = None

    @property
    def temperature(self) -> float | None:
        """By what its scores are divided in p(z|x); None where they are no scores of a search."""
        return None if self.search is None or self.reranked is not None else temperature_of(self.search.fusion)


@dataclass(frozen=True, kw_only=True)
class RerankedRanking(FirstRanking):
    """A ranking with what reranked it, and how it was searched before."""

    reranker: str
    rerank_fused: bool = False


def write_reranked(
    ranking: Artifact, blocks: Artifact, reranking: Reranking, qrels: Path | None, out: Writer
) -> dict[str, float]:
    """Write a ranking whose first hits are in the order of the reranker: run.trec, queries.jsonl and ranking.json.

    A document is read as its blocks, and has the best of their scores (MaxP). To likelihoods the search's logits are added, where the ranking tells its search. A run that was interrupted continues behind the last queries that it
    has read.

    Args:
        ranking: a ranking of blocks or documents.
        blocks: the blocks that were ranked.
        reranking: what reads how many hits of each query.
        qrels: judgements of the queries, or a BEIR folder, whose split test is taken.
        out: the artifact to write to.

    Returns:
        The numbers of queries and of hits that were read; with judgements nDCG@10 before and after.

    Raises:
        InputError: the ranking names a block that is not in the blocks.
    """
    described = read_description(ranking.file(RANKING), FirstRanking)
    unit = described.unit
    with ranking.file("queries.jsonl").open(encoding="utf-8") as lines:
        texts = {trec_name(query["id"]): query["text"] for query in map(json.loads, lines)}
    corpus = Corpus(blocks)
    rows = _rows(corpus, unit, ranking, reranking.depth)
    kept, journal = out.scratch("reranked") / "run.trec", out.scratch("reranked") / "done.json"
    counts = _done(journal, kept)
    rankings = islice(read_run(ranking.file("run.trec")), counts["queries"], None)
    with kept.open("ab") as file, progress(len(texts), "reranking", "queries") as bar:
        file.truncate(counts["bytes"])
        bar.skip(counts["queries"])
        while part := list(islice(rankings, QUERIES_AT_ONCE)):
            ranked = [_falling(found) for _, found in part]
            first = [names[: reranking.depth] for names, _ in ranked]
            held = corpus.blocks({row for names in first for name in names for row in rows[name]})
            own = [[[held[row] for row in rows[name]] for name in names] for names in first]
            scored = scores_of_units(reranking, [texts[query] for query, _ in part], own)
            for (query, _), (names, scores), best in zip(part, ranked, scored, strict=True):
                known = described.temperature
                places, new = reranking.sorted_again(scores, best, scores / known if known else None)
                ranks = run_lines(query, [names[place] for place in places.tolist()], new, "realmctl-rerank")
                file.write("".join(ranks).encode())
                counts["reranked"] += len(best)
            file.flush()
            counts |= {"queries": counts["queries"] + len(part), "bytes": file.tell()}
            write_sealed(journal, counts)
            bar.advance(len(part))
    del counts["bytes"]
    shutil.copyfile(kept, out.file("run.trec"))
    out.file("queries.jsonl").write_bytes(ranking.file("queries.jsonl").read_bytes())
    told = RerankedRanking(
        unit=unit,
        search=described.search,
        reranked=reranking.depth,
        reranker=reranking.name,
        rerank_fused=reranking.fused,
    )
    write_description(out.file(RANKING), told)
    return {**counts, **(gains(qrels, ranking.file("run.trec"), out.file("run.trec")) if qrels else {})}


def _done(journal: Path, run: Path) -> dict[str, int]:
    """What an earlier run wrote of the same ranking: queries, hits that were read, and bytes. Nothing, where it is not whole."""
    with suppress(OSError, ValueError):
        found = read_sealed(journal)
        if run.stat().st_size >= found["bytes"]:
            return found
    return {"queries": 0, "reranked": 0, "bytes": 0}


def scores_of_units(
    reranking: Reranking, queries: Sequence[str], units: Sequence[Sequence[Sequence[Block]]]
) -> list[NDArray[np.float32]]:
    """The score of each unit of each query, float32 [units]: the best of its blocks."""
    flat = [[block for unit in own for block in unit] for own in units]
    found = []
    for own, scores in zip(units, reranking.scores(queries, flat), strict=True):
        starts = np.cumsum([0, *(len(unit) for unit in own)])[:-1]
        found.append(np.maximum.reduceat(scores, starts) if len(own) else scores)
    return found


def gains(qrels: Path, before: Path, after: Path) -> dict[str, float]:
    """nDCG@10 of two runs of the same queries, by the names of metrics. Where they cannot be measured, nothing, with a warning: the ranking is made."""
    if find_spec("ir_measures") is None:
        warn(
            f"{MEASURE} before and after is not measured, because ir-measures is not installed: pip install 'realmctl[ir]'"
        )
        return {}
    try:
        relevance = trec_named(read_qrels(qrels_file(qrels, "test")))
        return {f"{MEASURE} before": _mean(relevance, before), MEASURE: _mean(relevance, after)}
    except InputError as error:
        warn(f"{MEASURE} before and after is not measured: {error}")
        return {}


def _mean(relevance: Relevance, run: Path) -> float:
    from realmctl.extras.ir.ranking.measures import measured, parsed, require_judged

    values = [
        value[MEASURE] for _, value in measured(parsed(MEASURE), relevance, require_judged(relevance, read_run(run)))
    ]
    return round(float(np.mean(values)), 6)


def _falling(found: Mapping[str, float]) -> tuple[list[str], Scores]:
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return [name for name, _ in ranked], np.array([score for _, score in ranked], np.float32)


def _rows(corpus: Corpus, unit: str, ranking: Artifact, depth: int) -> dict[str, list[int]]:
    """{name: rows of its blocks} of what is read again. All blocks are looked at once. Raises InputError for a name that no block has."""
    named: set[str] = set()
    for _, found in read_run(ranking.file("run.trec")):
        named.update(_falling(found)[0][:depth])
    rows: dict[str, list[int]] = {}
    for row, block in enumerate(corpus):
        name = trec_name(block.id if unit == "block" else block.document)
        if name in named:
            rows.setdefault(name, []).append(row)
    if missing := named - rows.keys():
        raise InputError(
            f"{ranking} ranks {min(missing)!r}, which is no {unit} of {corpus.artifact}. Name the blocks that were ranked."
        )
    return rows
