"""Which retriever, index and blocks belong together in a search."""

from __future__ import annotations

from realmctl.artifacts import Artifact, require_descent, require_same_vocabulary
from realmctl.errors import MismatchError
from realmctl.models.retriever_settings import read_settings


def require_parts(retriever: Artifact, index: Artifact, blocks: Artifact) -> None:
    """Raise MismatchError unless retriever, index and blocks belong together."""
    require_same_vocabulary(blocks, retriever)
    require_descent(index, blocks)
    require_index_of(index, retriever)


def require_index_of(index: Artifact, retriever: Artifact) -> None:
    """Raise MismatchError unless `retriever` embedded the vectors of the index, or was fine-tuned with them."""
    embedded_by = read_settings(retriever.path).block_retriever
    if not embedded_by:
        require_descent(index, retriever)
    elif embedded_by != index.lineage.get("retriever"):
        raise MismatchError(
            f"{index} was not built with the block encoder that {retriever} was fine-tuned with "
            f"({str(index.lineage.get('retriever'))[:12]} and {embedded_by[:12]}). Use the index in its own model."
        )
