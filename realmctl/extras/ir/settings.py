"""The settings of `rank`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.pipeline import Precision, Settings, check_device, help_texts, reads, runtime, setting, source
from realmctl.retrieval.names import RERANK_DEPTH, Bm25Tokens, Fusion, search_methods

DEPTH_FOR_DOCUMENTS = 4
"""Blocks that are retrieved for each document of a ranking, since a document may have several."""


def _searches_no_index(given: Mapping[str, object]) -> bool:
    from realmctl.retrieval.search.methods import uses_index  # it imports torch, and fields are declared without

    method = given.get("method", "dense")
    return method not in search_methods() or not uses_index(str(method))


class RankSettings(Settings):
    """What is ranked for which queries, and how."""

    blocks: Artifact = reads("blocks", help="Blocks to search.")
    retriever: Artifact | None = reads(
        "retriever",
        help="Retriever that embeds the queries.",
        unused_when=_searches_no_index,
        default=None,
    )
    index: Artifact | None = reads(
        "index", help="Index of that retriever.", unused_when=_searches_no_index, default=None
    )
    queries: Path = source(
        "Queries: a BEIR folder or its queries.jsonl, a table of id and text (MS MARCO), a .txt with one on each line, or a question set."
    )
    qrels: Path | None = source(
        "Judgements, or a BEIR folder. Only the queries that they judge are searched.",
        default=None,
    )
    method: str = setting(
        "dense: retriever and index. bm25: BM25 over title and text. hybrid: both, fused. Other names come from plug-ins.",
        default="dense",
        choices=search_methods,
    )
    top: int = setting("Number of blocks or documents in the ranking of a query.", default=100, at_least=1)
    filter: str = setting(help_texts.FILTER, default="", left_out_at="")
    unit: Literal["block", "document"] = setting(
        "What is ranked. document: the documents that the blocks were cut from, ranked by their best block (MaxP).",
        default="block",
        advanced=True,
    )
    depth: int | None = setting(
        "Blocks that each searcher retrieves for a query. Default: --top, and four times --top for documents; for hybrid 100 at least; with --rerank as many as are reranked at least.",
        default=None,
        at_least=1,
        advanced=True,
    )
    bm25_stemmer: str | None = setting(help_texts.BM25_STEMMER, default=None, advanced=True)
    bm25_tokens: Bm25Tokens | None = setting(help_texts.BM25_TOKENS, default=None, advanced=True)
    bm25_weight: float | None = setting(help_texts.BM25_WEIGHT, default=None, at_least=0, at_most=1e6)
    fusion: Fusion | None = setting(help_texts.FUSION, default=None, advanced=True)
    rerank: str | None = source(help_texts.RERANK, default=None, hub=True)
    rerank_depth: int | None = setting(help_texts.RERANK_DEPTH, default=None, at_least=1, used_with="rerank")
    rerank_fused: bool = setting(help_texts.RERANK_FUSED, default=False, left_out_at=False, used_with="rerank")
    batch_size: int = runtime("Queries per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Precision = setting(help_texts.PRECISION, default="auto", advanced=True)

    @property
    def depth_of_search(self) -> int:
        """Blocks that each searcher retrieves for a query: as many as are reranked, at least."""
        read = (self.rerank_depth or RERANK_DEPTH) if self.rerank is not None else 0
        return self.depth or max(read, self.top * (DEPTH_FOR_DOCUMENTS if self.unit == "document" else 1))
