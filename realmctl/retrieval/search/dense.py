"""Dense retrieval: a query encoder beside the index of its blocks' vectors.

Legend: B and Q questions, K blocks of a question, D projection.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.artifacts import Artifact, Writer, require_descent, require_same_vocabulary, writing
from realmctl.errors import MismatchError
from realmctl.index.protocol import Index
from realmctl.index.store import open_index
from realmctl.nn.retriever import Retriever
from realmctl.retrieval.corpus import TokenIds
from realmctl.retrieval.initial_encoder import tokenizer_folder
from realmctl.retrieval.search.embedding import embed_questions
from realmctl.retrieval.search.searcher import Searcher

QUESTION_LENGTH = 512


class DenseSearcher(Searcher):
    """A query encoder with the index of its blocks. Raises MismatchError when the two do not belong together."""

    def __init__(self, retriever: Artifact, index: Artifact, blocks: Artifact, device: str, precision: str) -> None:
        require_same_vocabulary(blocks, retriever)
        require_descent(index, blocks)
        require_index_of(index, retriever)
        super().__init__(blocks, device)
        self.precision, self.made_of = precision, (retriever, index)
        self.retriever = Retriever.load(retriever.path).to(self.device)
        self.index: Index = open_index(index.path, str(self.device))

    @property
    def learner(self) -> Retriever:
        """The retriever; for training it should be `query_only`, the block vectors stay as they are."""
        return self.retriever

    def nearest(self, tokens: Sequence[TokenIds], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """By inner product, from the index."""
        query_BD = embed_questions(self.retriever, self.collator, tokens, QUESTION_LENGTH, precision=self.precision)
        return self.index.search(query_BD, k)

    def scores(self, tokens: Sequence[TokenIds], rows_QK: NDArray[np.int64]) -> Tensor:
        """Inner products of the live queries and the frozen blocks."""
        query_QD = self.retriever.embed_queries(self.collator.query(tokens, QUESTION_LENGTH).to(self.device))
        block_QKD = torch.from_numpy(self.index.vectors(rows_QK)).to(self.device)
        return self.retriever.score(query_QD, block_QKD)

    def save(self, out: Writer) -> None:
        """Parts `retriever` (its query side) and `index` (hard links)."""
        retriever, index = self.made_of
        with writing(out.path / "retriever", dataclasses.replace(out.origin, kind="retriever")) as part:
            part.metrics["block_retriever"] = retriever.metrics.get("block_retriever") or retriever.content
            self.retriever.cpu().save(part.path)
            part.copy_folder("tokenizer", tokenizer_folder(self.corpus.artifact))
        out.adopt("index", index)


def require_index_of(index: Artifact, retriever: Artifact) -> None:
    """An index belongs to the retriever that embedded its blocks, and to retrievers fine-tuned from that one."""
    embedded_by = retriever.metrics.get("block_retriever")
    if not embedded_by:
        require_descent(index, retriever)
    elif embedded_by != index.lineage.get("retriever"):
        raise MismatchError(
            f"{index} was not built with the block encoder that {retriever} was fine-tuned beside "
            f"({str(index.lineage.get('retriever'))[:12]} and {embedded_by[:12]}). Use the index in its own model."
        )
