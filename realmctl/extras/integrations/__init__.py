"""Searches of a workspace as retrievers of LangChain, LlamaIndex and Haystack, one file each. They are imported as `realmctl.integrations.NAME`."""

from __future__ import annotations

from typing import Any

from realmctl.retrieval.search.block_search import Hit
from realmctl.retrieval.search.text_search import TextSearch

OFFERS: dict[str, dict[str, str]] = {}


def metadata_of(hit: Hit, search: TextSearch) -> dict[str, Any]:
    """What a framework's document says of a hit: the fields of its document, where it stands, its score, and how it was searched."""
    block = hit.block
    place = {"block": block.id, "document": block.document, "title": block.title}
    beside = {"section": block.section, "page": block.page, "copies": [other.id for other in hit.copies]}
    told = search.profile.told() if search.profile else {}
    return {
        **block.fields,
        **place,
        **{name: value for name, value in beside.items() if value},
        "score": hit.score,
        "search": told,
    }
