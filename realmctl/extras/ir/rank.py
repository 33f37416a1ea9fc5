"""`realmctl rank`: rank blocks or documents for queries, and write the ranking as a TREC run."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.extras.ir.settings import RankSettings
from realmctl.pipeline import Stage


class Rank(RankSettings, Stage):
    """Rank the blocks for each query, and write the ranking as a TREC run.

    The retriever and the index may be those of a model or a qa-model. BM25 needs neither. hybrid fuses
    dense retrieval and BM25. --rerank reads the first hits again; with --qrels it prints nDCG@10 before and after. eval-run measures the ranking.
    """

    makes = "ranking"
    headline = ("nDCG@10 before", "nDCG@10", "queries", "hits", "without_hits")

    def check(self) -> None:
        from realmctl.extras.ir.rank_queries import check_ranking

        check_ranking(self)

    def run(self, out: Writer) -> Mapping[str, float]:
        from realmctl.extras.ir.rank_queries import write_ranking

        return write_ranking(self, out)
