"""A search of a workspace as a retriever of LangChain (package `langchain-core`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from realmctl.extras.integrations import metadata_of
from realmctl.retrieval.search.opening import load_search


class Retriever(BaseRetriever):  # type: ignore[misc]
    """Finds blocks of a workspace.

    workspace, options: as of `realmctl.load_search`. k: blocks for a query. filter: which blocks may be found.

    Examples:
        >>> Retriever("artifacts", k=4, filter="date >= 2024").invoke("Who wrote it?")
    """

    search_of: Any
    k: int = 5
    filter: str | Sequence[str] | None = None

    def __init__(
        self,
        workspace: Path | str = "artifacts",
        k: int = 5,
        filter: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(search_of=load_search(workspace, **options), k=k, filter=filter)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [
            Document(page_content=hit.block.text, id=hit.block.id, metadata=metadata_of(hit, self.search_of))
            for hit in self.search_of.search(query, self.k, self.filter)
        ]
