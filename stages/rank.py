"""`realmctl rank`: rank blocks or documents for queries, and write the ranking as a TREC run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from realmctl.artifacts import Artifact, Writer
from realmctl.errors import ConfigError
from realmctl.log import say
from realmctl.pipeline import Stage, check_device, flag_of, help_texts, reads, runtime, setting, source
from realmctl.retrieval.names import search_methods

if TYPE_CHECKING:
    from realmctl.retrieval.search.searcher import SearchInputs

DEPTH_FOR_DOCUMENTS = 4


class Rank(Stage):
    """Rank the blocks for each query, and write the ranking as a TREC run.

    The retriever and the index may be those of a model or a qa-model. BM25 needs neither. hybrid fuses the rankings of
    dense retrieval and BM25 by reciprocal rank fusion. eval-run measures the ranking.
    """

    makes = "ranking"
    headline = ("queries", "hits", "without_hits")

    blocks: Artifact = reads("blocks", help="Blocks to search.")
    retriever: Artifact | None = reads(
        "retriever",
        help="Retriever that embeds the queries.",
        replaced_by=lambda given: not _uses_index(given),
        default=None,
    )
    index: Artifact | None = reads(
        "index", help="Index of that retriever.", replaced_by=lambda given: not _uses_index(given), default=None
    )
    queries: Path = source(
        "Queries: a BEIR folder or its queries.jsonl, a table of id and text (MS MARCO), or a question set."
    )
    method: str = setting(
        "dense: retriever and index. bm25: BM25 over title and text. hybrid: both, fused by rank. Other names come from plug-ins.",
        default="dense",
        choices=search_methods,
    )
    top: int = setting("Number of blocks or documents in the ranking of a query.", default=100, at_least=1)
    unit: Literal["block", "document"] = setting(
        "What is ranked. document: the documents that the blocks were cut from, ranked by their best block (MaxP).",
        default="block",
    )
    depth: int | None = setting(
        "Blocks that each searcher retrieves for a query. Default: --top, and four times --top for documents.",
        default=None,
        at_least=1,
    )
    rrf_k: float = setting(
        "hybrid: constant k of the fusion. A block scores 1 / (k + rank) in each ranking.",
        default=60.0,
        above=0,
        at_most=1e6,
    )
    bm25_stemmer: str | None = setting(help_texts.BM25_STEMMER, default=None)
    bm25_weight: float = setting(help_texts.BM25_WEIGHT, default=1.0, at_least=0, at_most=1e6)
    batch_size: int = runtime("Queries per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _uses_index(vars(self)):
            for name in [name for name in ("retriever", "index") if getattr(self, name) is not None]:
                say(f"rank: --method {self.method} does not use {flag_of(name)}, so it is ignored")
                object.__setattr__(self, name, None)

    def check(self) -> None:
        from realmctl.retrieval.search.methods import searchers_of

        if self.bm25_stemmer and self.method == "dense":
            raise ConfigError(
                f"--bm25-stemmer {self.bm25_stemmer} is for BM25. Leave it out, or --method hybrid or bm25."
            )
        if self._depth() < self.top:
            raise ConfigError(f"--depth {self.depth} is below --top {self.top}. Retrieve at least as many blocks.")
        for searcher in searchers_of(self.method):
            searcher.check(self._inputs())

    def run(self, out: Writer) -> Mapping[str, int]:
        from realmctl.retrieval.search.methods import start_method
        from realmctl.retrieval.search.ranking import Ranker

        if self.index is not None and (measured := self.index.metrics.get("recall_k", self._depth())) < self._depth():
            say(
                f"rank: the recall of {self.index.path} was measured for {measured} neighbours, and {self._depth()} are searched. "
                f"Build it with --recall-k {self._depth()} to know what it misses."
            )
        ranker = Ranker(
            searcher=start_method(self.method, self._inputs(), self.rrf_k, bm25_weight=self.bm25_weight),
            top=self.top,
            depth=self._depth(),
            unit=self.unit,
            batch_size=self.batch_size,
        )
        return ranker.write(self.queries, out, f"realmctl-{self.method}")

    def _depth(self) -> int:
        if self.depth is not None:
            return self.depth
        return self.top * (DEPTH_FOR_DOCUMENTS if self.unit == "document" else 1)

    def _inputs(self) -> SearchInputs:
        from realmctl.retrieval.search.searcher import SearchInputs

        return SearchInputs(
            blocks=self.blocks,
            retriever=self.retriever,
            index=self.index,
            device=self.device,
            precision=self.precision,
            bm25_stemmer=self.bm25_stemmer,
        )


def _uses_index(given: Mapping[str, object]) -> bool:
    from realmctl.retrieval.search.methods import uses_index

    method = given.get("method", "dense")
    return method in search_methods() and uses_index(method)
