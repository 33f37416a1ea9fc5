"""Import an open-QA checkpoint as a qa-model: query tower, span reader, and the index of the pre-trained embedder.

Fine-tuning changed the embedder and not the index. So the embedder becomes a query-only retriever. The lineage of the index
names the pre-trained embedder: the artifact given by --retriever, or else a placeholder that matches no artifact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from realmctl.artifacts import Artifact, Writer, open_artifact, require_same_vocabulary, writing
from realmctl.artifacts.description import QA_MODEL, QaModelDescription, has_titles, write_description
from realmctl.artifacts.hashing import digest
from realmctl.convert.imports.imported import Imported
from realmctl.errors import MismatchError
from realmctl.log import warn
from realmctl.pipeline import reads, setting

if TYPE_CHECKING:
    from realmctl.convert.imports.checkpoint import Checkpoint

ROWS_COMPARED = 8
TOLERANCE = 0.05
"""Largest accepted distance between a row and its block embedded again, as a share of the row's norm.

For another model the distance is above 1."""


class ImportQaModel(Imported):
    """Import a published open-QA checkpoint."""

    makes = "qa-model"
    version = 2
    blocks: Artifact = reads("blocks", help="Blocks of the index.")
    retriever: Artifact | None = reads("retriever", help="The pre-trained embedder.", explicit_only=True)
    reader_beam: int = setting("Blocks that are read.", default=5)
    reader_length: int = setting("Wordpieces of the reader's input.", default=320)
    span_width: int = setting("Longest answer in wordpieces.", default=10)

    def check(self) -> None:
        from realmctl.convert.realm_weights import block_embeddings_of

        checkpoint, _ = self.opened()
        rows, blocks = len(block_embeddings_of(checkpoint)), self.blocks.metrics["blocks"]
        if rows != blocks:
            raise MismatchError(
                f"{checkpoint.folder} indexes {rows} blocks, and {self.blocks} holds {blocks}: row i must be block i. "
                "Name the block_records.npy that was published with this index."
            )
        require_same_vocabulary(self.blocks, *([self.retriever] if self.retriever else []))

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.convert.realm_weights import query_side_of, span_head_is_fresh, span_reader_of

        checkpoint, words = self.opened()
        index = self._write_index(out, checkpoint)
        with writing(out.path / "retriever", dataclasses.replace(out.origin, kind="retriever")) as part:
            query_side_of(checkpoint, self._block_encoder()).save(part.path, index.lineage["retriever"])
            words.save(part.path / "tokenizer")
        reader = span_reader_of(checkpoint)
        with writing(out.path / "reader", dataclasses.replace(out.origin, kind="span-reader")) as part:
            reader.save(part.path)
            words.save(part.path)
        described = QaModelDescription(
            answerer="extractive",
            searcher="dense",
            objective="orqa",
            reader_beam=self.reader_beam,
            reader_length=self.reader_length,
            span_width=self.span_width,
        )
        write_description(out.file(QA_MODEL), described)
        if fresh := span_head_is_fresh(reader):
            warn("this checkpoint's span head was never trained to answer: fine-tune before you ask it")
        return {"rows": index.metrics["rows"], "span_head_trained": not fresh}

    def _block_encoder(self) -> str:
        from realmctl.models.retriever import Retriever

        return Retriever.load(self.retriever.path).block_encoder_hash() if self.retriever else "unknown"

    def _write_index(self, out: Writer, checkpoint: Checkpoint) -> Artifact:
        import numpy as np

        from realmctl.convert.realm_weights import block_embeddings_of
        from realmctl.index.build import build
        from realmctl.index.index_type import IndexOptions

        options = IndexOptions(type="exact")
        unnamed = digest(["the pre-trained embedder of", out.origin.inputs["checkpoint"]])
        lineage = {**out.origin.lineage, "retriever": self.retriever.content if self.retriever else unnamed}
        origin = dataclasses.replace(out.origin, kind="index", settings=dataclasses.asdict(options), lineage=lineage)
        with writing(out.path / "index", origin) as part:
            np.save(part.file("vectors.npy"), block_embeddings_of(checkpoint).numpy())
            part.metrics.update(build(part.path, options))
            if self.retriever and has_titles(self.blocks):
                require_rows_of(self.retriever, self.blocks, part.path / "vectors.npy")
        return open_artifact(out.path / "index")


def require_rows_of(retriever: Artifact, blocks: Artifact, vectors: Path) -> None:
    """Raise MismatchError unless `retriever` gives the same vectors for a few blocks spread over the index."""
    import numpy as np

    from realmctl.corpus.corpus import Corpus
    from realmctl.index.vectors import open_vectors
    from realmctl.models.retriever import Retriever
    from realmctl.retrieval.embedding.embedding import embed_blocks
    from realmctl.retrieval.initial_encoder import packer_of, tokenizer_of

    matrix = open_vectors(vectors)
    rows = np.unique(np.linspace(0, len(matrix) - 1, ROWS_COMPARED).astype(int)).tolist()
    collator = packer_of(tokenizer_of(blocks))
    anew = embed_blocks(Retriever.load(retriever.path), collator, Corpus(blocks), rows, precision="fp32")
    theirs = matrix[rows].astype(np.float32)
    far = np.linalg.norm(anew - theirs, axis=1) / np.maximum(np.linalg.norm(theirs, axis=1), 1e-12)
    if np.median(far) > TOLERANCE:
        raise MismatchError(
            f"{retriever} did not make this index: of {len(rows)} blocks embedded again, row {rows[int(far.argmax())]} "
            f"differs by {far.max():.0%} of its norm. Name the pre-trained embedder of the index, and the titles of "
            "these blocks."
        )
