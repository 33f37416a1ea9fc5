"""Dense retrieval: a query encoder with the index of the blocks' vectors.

Legend: B and Q questions, K blocks of a question, D projection.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.artifacts import Artifact, Writer, tokenizer_folder, writing
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import ConfigError
from realmctl.index.index_type import open_index
from realmctl.index.merged import best_among
from realmctl.index.protocol import Index, RowIds, Scores, check_queries
from realmctl.models.precision import to_device
from realmctl.models.retriever import Retriever
from realmctl.models.retriever_settings import read_settings
from realmctl.retrieval.embedding.embedding import embed_questions
from realmctl.retrieval.search.block_search import SearchInputs, scale_of
from realmctl.retrieval.search.parts import require_parts
from realmctl.retrieval.search.searcher import Searcher


class DenseSearcher(Searcher):
    """A query encoder with the index of its blocks. Raises MismatchError when the two do not belong together."""

    uses_index = True

    def __init__(
        self,
        retriever: Artifact,
        index: Artifact,
        blocks: Artifact,
        device: str,
        precision: str,
        opener: Callable[[Path, str], Index] = open_index,
    ) -> None:
        require_parts(retriever, index, blocks)
        super().__init__(blocks, device)
        self.precision, self.made_of = precision, (retriever, index)
        self.retriever = Retriever.load(retriever.path).to(self.device)
        self.index: Index = opener(index.path, str(self.device))

    @classmethod
    def check(cls, inputs: SearchInputs) -> None:
        """Check that the index was built from these blocks, with this retriever or the one it was fine-tuned from."""
        retriever, index = _parts_of(inputs)
        require_parts(retriever, index, inputs.blocks)

    @classmethod
    def start(cls, inputs: SearchInputs) -> Self:
        retriever, index = _parts_of(inputs)
        return cls(retriever, index, inputs.blocks, inputs.device, inputs.precision, inputs.opener)

    @classmethod
    def reopen(cls, qa_model: Artifact, inputs: SearchInputs) -> Self:
        retriever, index = qa_model.part("retriever"), inputs.index or qa_model.part("index")
        return cls(retriever, index, inputs.blocks, inputs.device, inputs.precision, inputs.opener)

    def over(self, blocks: Artifact, index: Artifact | None, opener: Callable[[Path, str], Index] = open_index) -> Self:
        """Return a searcher of another index. Both share one retriever in memory."""
        if index is None:
            raise ConfigError(f"{blocks} cannot be searched without an index of their vectors. Name --index.")
        retriever, _ = self.made_of
        require_parts(retriever, index, blocks)
        other = copy.copy(self)
        other.made_of, other.corpus = (retriever, index), Corpus(blocks)
        other.index = opener(index.path, str(self.device))
        other.__dict__.pop("unit_score", None)
        return other

    def prepare_training(self) -> None:
        """Keep only the query encoder, because the vectors of the blocks are frozen."""
        self.retriever = self.retriever.query_only()

    @property
    def learner(self) -> Retriever:
        """The retriever; after `prepare_training` only its query encoder."""
        return self.retriever

    @cached_property
    def unit_score(self) -> float:
        return scale_of(self.index.vectors, self.index.count)

    def nearest(self, tokens: Sequence[TokenIds], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The best blocks of the index by inner product."""
        return self.index.search(self._embedded(tokens), k)

    def nearest_among(self, tokens: Sequence[TokenIds], k: int, rows: RowIds) -> list[tuple[Scores, RowIds]]:
        """The best of some blocks: their vectors are scored, whatever the type of the index."""
        query_BD = check_queries(self._embedded(tokens), k, dimension=self.index.dimension)
        return best_among(lambda own: query_BD @ self.index.vectors(own).T, k, rows)

    def _embedded(self, tokens: Sequence[TokenIds]) -> NDArray[np.float32]:
        return embed_questions(self.retriever, self.collator, tokens, precision=self.precision)

    def scores(self, tokens: Sequence[TokenIds], rows_QK: NDArray[np.int64]) -> Tensor:
        """Inner products of the current query vectors with the frozen block vectors."""
        query_QD = self.retriever.embed_queries(
            self.retriever.pack_queries(self.collator, tokens, self.retriever.longest_question).to(self.device)
        )
        block_QKD = to_device(torch.from_numpy(self.index.vectors(rows_QK)), self.device)
        return self.retriever.score(query_QD, block_QKD)

    def save(self, out: Writer) -> None:
        """Write the parts `retriever` (its query side) and `index` (hard links)."""
        retriever, index = self.made_of
        block_retriever = read_settings(retriever.path).block_retriever or retriever.content
        with writing(out.path / "retriever", dataclasses.replace(out.origin, kind="retriever")) as part:
            self.retriever.cpu().save(part.path, block_retriever)
            part.copy_folder("tokenizer", tokenizer_folder(self.corpus.artifact))
        out.adopt("index", index)


def _parts_of(inputs: SearchInputs) -> tuple[Artifact, Artifact]:
    if inputs.retriever is None or inputs.index is None:
        raise ConfigError("dense retrieval needs a retriever and an index. Name --retriever and --index.")
    return inputs.retriever, inputs.index
