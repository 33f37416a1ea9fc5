"""`realmctl rerank`: put the first hits of a ranking into the order of a cross-encoder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from realmctl.artifacts import Artifact, Writer, open_artifact, require_descent, version_numbers
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting, source


class Rerank(Stage):
    """Rerank: read the first hits of each query of a ranking again, each together with its query, and sort them by the new scores.

    A ranking goes in and a ranking comes out, which eval-run, mine-negatives and rerank itself read. Hits behind the depth keep their order. With
    --qrels, nDCG@10 before and after is printed. A document is read as its blocks and has the best of their scores. Of a series the newest ranking is
    taken that this stage did not make.
    """

    version = 2  # 2: the likelihood of a qa-model is weighed by the search's probability
    makes = "ranking"
    headline = ("nDCG@10 before", "nDCG@10", "queries", "reranked")
    resumable = True

    ranking: Artifact = reads("ranking", help="Ranking of rank.")
    blocks: Artifact = reads("blocks", help="Blocks that were ranked.")
    model: str = source(help_texts.RERANK, hub=True)
    depth: int = setting("Hits of a query that are reranked.", default=50, at_least=1)
    fused: bool = setting(help_texts.RERANK_FUSED, default=False, left_out_at=False)
    qrels: Path | None = source("Relevance judgements, or a BEIR folder, to measure before and after.", default=None)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ranking.named_as_newest:  # a series, which holds what this stage made of it too
            object.__setattr__(self, "ranking", _not_reranked(self.ranking))

    def check(self) -> None:
        from realmctl.retrieval.search.reranking import found_reranker

        require_descent(self.ranking, self.blocks)
        found_reranker(self.model)

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.extras.ir.reranking import write_reranked
        from realmctl.retrieval.search.reranking import Reranking

        reranking = Reranking.of(self.model, self.depth, self.device, self.fused)
        assert reranking is not None
        return write_reranked(self.ranking, self.blocks, reranking, self.qrels, out)


def _not_reranked(newest: Artifact) -> Artifact:
    """The newest version of a series that `rerank` did not make; the newest one where it made all."""
    series = newest.path.parent
    for number in reversed(version_numbers(series)):
        found = newest if newest.path.name == f"v{number}" else open_artifact(series / f"v{number}")
        if found.manifest.stage != Rerank.command():
            return found
    return newest
