"""A search of a workspace as a retriever of LlamaIndex (package `llama-index-core`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from realmctl.extras.integrations import metadata_of
from realmctl.retrieval.search.opening import load_search


class Retriever(BaseRetriever):  # type: ignore[misc]
    """Finds blocks of a workspace.

    workspace, options: as of `realmctl.load_search`. k: blocks for a query. filter: which blocks may be found.

    Examples:
        >>> Retriever("artifacts", k=4, filter="date >= 2024").retrieve("Who wrote it?")
    """

    def __init__(
        self,
        workspace: Path | str = "artifacts",
        k: int = 5,
        filter: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.search, self.k, self.filter = load_search(workspace, **options), k, filter

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(text=hit.block.text, id_=hit.block.id, metadata=metadata_of(hit, self.search)),
                score=hit.score,
            )
            for hit in self.search.search(query_bundle.query_str, self.k, self.filter)
        ]
