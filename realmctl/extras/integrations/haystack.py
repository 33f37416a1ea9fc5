"""A search of a workspace as a component of Haystack (package `haystack-ai`)."""

from __future__ import annotations

from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from realmctl.extras.integrations import metadata_of
from realmctl.retrieval.search.opening import load_search


@component
class Retriever:
    """Finds blocks of a workspace.

    workspace, options: as of `realmctl.load_search`. top_k: blocks for a query. filter: which blocks may be found.

    Examples:
        >>> Retriever("artifacts", top_k=4, filter="date >= 2024").run("Who wrote it?")["documents"]
    """

    def __init__(
        self,
        workspace: str = "artifacts",
        top_k: int = 5,
        filter: str | list[str] | None = None,
        **options: Any,
    ) -> None:
        self.given: dict[str, Any] = {"workspace": str(workspace), "top_k": top_k, "filter": filter, **options}
        self.search, self.top_k, self.filter = load_search(workspace, **options), top_k, filter

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    def run(self, query: str, top_k: int | None = None, filter: str | None = None) -> dict[str, list[Document]]:
        """Return the blocks for a query, best first. top_k, filter: instead of those of the component."""
        hits = self.search.search(query, top_k or self.top_k, filter if filter is not None else self.filter)
        return {
            "documents": [
                Document(id=hit.block.id, content=hit.block.text, meta=metadata_of(hit, self.search), score=hit.score)
                for hit in hits
            ]
        }

    def to_dict(self) -> dict[str, Any]:
        """What a saved pipeline says of this component."""
        found: dict[str, Any] = default_to_dict(self, **self.given)
        return found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Retriever:
        """Open the component of a saved pipeline."""
        found: Retriever = default_from_dict(cls, data)
        return found
