"""The blocks and the index that a model, a qa-model or an index is used with."""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts import MANIFEST, Artifact, version_numbers
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.pipeline.choosing import Named, beside, fitting

ArtifactLike = Path | str | Artifact
"""The values that name an artifact: a series, a version or an open artifact."""
BlocksLike = ArtifactLike | Corpus
"""The values that `blocks=` accepts: a series, a version, an open artifact or opened blocks."""


def with_blocks(
    kind: str,
    path: ArtifactLike,
    blocks: BlocksLike | None,
    index: ArtifactLike | None = None,
    retriever: Artifact | None = None,
) -> tuple[Artifact, Artifact, Artifact | None]:
    """Return a model, a qa-model or an index, its blocks, and the index to search instead of the model's own, if any.

    They are the newest that fit each other (`realmctl.pipeline.choosing`).

    Args:
        kind: of the artifact: model, qa-model or index.
        path: the artifact.
        blocks: by default the series `blocks` beside the artifact's series.
        index: by default the model's own; if that is of other blocks, one of the series `index` beside the blocks.
        retriever: of an index, the retriever that searches it.

    Raises:
        InputError: no blocks are passed, and there are none beside the artifact's series.
        MismatchError: an artifact is of another kind, or no versions fit each other.
    """
    if blocks is None and isinstance(path, Artifact | Path | str) and str(path):
        blocks = beside(path, "blocks")
        if not version_numbers(blocks) and not (blocks / MANIFEST).is_file():
            raise InputError(
                f"{path} needs the blocks it was made from for their texts, and {blocks} has no version. Name them with blocks=."
            )
    if isinstance(blocks, Corpus):
        blocks = blocks.artifact
    if kind == "index":
        chosen = fitting(blocks, index=path, retriever=retriever)
    else:
        chosen = fitting(blocks, index=index, models={kind: Named(path, (kind,), f"--{kind}")})
    artifact, of_blocks = chosen[kind], chosen["blocks"]
    assert artifact is not None and of_blocks is not None
    return artifact, of_blocks, chosen.get("index") if kind != "index" else None
