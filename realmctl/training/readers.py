"""The readers p(y|z,x) of pre-training: the seam, hidden text and candidates in, log p(y|z,x) out, and REALM's own, `MaskedReader`.

Another reader is a class in a package of its own, by its entry point or room (`realmctl.readers`), and `pretrain --reader NAME`.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Writer, tokenizer_folder, writing
from realmctl.corpus.corpus import Corpus
from realmctl.models.families.known import require_positions
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.optimizer import layer_lr_multipliers
from realmctl.models.precision import to_device
from realmctl.models.reader import Reader
from realmctl.models.retriever import Retriever
from realmctl.retrieval.search.candidates import titles_and_bodies
from realmctl.spans.query import Query
from realmctl.spans.tagged_queries import Queries, TaggedQueries
from realmctl.tokens.frame import AROUND_ONE
from realmctl.training.names import READERS
from realmctl.training.objective import Sums
from realmctl.training.settings.pretrain import PretrainSettings
from realmctl.training.starts.encoder import starting_bert


class PretrainReader(ABC):
    """A reader of pre-training. Legend: B queries, N candidates, M hidden tokens.

    module: What computes it, and is trained if the reader is. queries: What it is asked. is_trained: Whether it learns.
    lr_multipliers: {module: factor} for modules whose learning rate differs from the schedule's.
    chance: The loss of guessing all hidden tokens, in nats; 0 where it is not known.
    """

    module: nn.Module
    queries: Queries
    is_trained: bool = True
    chance: float = 0.0
    lr_multipliers: Mapping[nn.Module, float] = MappingProxyType({})

    @classmethod
    @abstractmethod
    def of(cls, settings: PretrainSettings, corpus: Corpus, collator: Collator, retriever: Retriever) -> Self:
        """Load the reader that the settings describe. Raises ConfigError and InputError where it cannot read these blocks."""

    @abstractmethod
    def hidden(self, query: Query) -> int:
        """Number of the reader's tokens that are hidden in a query and asked for."""

    @abstractmethod
    def read(self, asked: QueryBatch, rows_BN: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return log p(y_m|z,x) of each hidden token with each block, float32 [B, N, M], and the slots with a token, bool [B, M].

        rows_BN: rows of blocks. A negative row is the empty document. Gradients reach the module if its parameters take some.
        """

    @abstractmethod
    def save(self, out: Writer) -> None:
        """Write the trained reader as a part of the model. A reader that is a file from outside and did not learn writes nothing."""

    def sums(self) -> Sums:
        """Return metrics of what was read since the last call."""
        return {}


class MaskedReader(PretrainReader):
    """REALM's reader: a masked language model reads the query with [MASK] beside a block, and fills the masks (section 3.2).

    Raises ConfigError when it has too few positions for a query beside a block.
    """

    module: Reader
    queries: TaggedQueries

    def __init__(
        self,
        settings: PretrainSettings,
        queries: TaggedQueries,
        corpus: Corpus,
        collator: Collator,
        block_length: int,
    ) -> None:
        self.queries, self.is_trained = queries, not settings.freezes_reader
        start = starting_bert(
            settings.encoder, settings.bert, settings.blocks, settings.seed, settings.dropout, "trained"
        )
        self.module = Reader.from_masked_lm(start)
        self.settings, self.corpus, self.collator = settings, corpus, collator
        self.query_length, self.block_length = queries.query_length, block_length
        longest_body = min(block_length - AROUND_ONE, int(corpus.lengths.max()))
        longest_input = self.query_length + longest_body + len(collator.frame.between)
        require_positions(self.module.mlm, longest_input, "tag --query-length and chunk --max-wordpieces")
        self.chance = math.log(self.module.mlm.config.vocab_size)
        self.lr_multipliers = layer_lr_multipliers(self.module.mlm.base_model, settings.layer_decay)

    @classmethod
    def of(cls, settings: PretrainSettings, corpus: Corpus, collator: Collator, retriever: Retriever) -> Self:
        assert settings.spans is not None  # `check` asks for it
        return cls(settings, TaggedQueries(settings.spans, corpus), corpus, collator, retriever.block_length)

    def hidden(self, query: Query) -> int:
        return query.hidden

    def read(self, asked: QueryBatch, rows_BN: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        count, device = rows_BN.shape[1], next(self.module.parameters()).device
        queries = [query.tokens for query in asked.queries for _ in range(count)]
        _, bodies = titles_and_bodies(self.corpus, rows_BN.ravel())
        joint = self.collator.joint(queries, bodies, self.query_length, self.block_length)
        position_BM, target_BM, hidden_BM = (
            to_device(tensor, device) for tensor in (asked.position_BM, asked.target_BM, asked.hidden_BM)
        )
        return self.module.mlm_log_prob(joint.to(device), position_BM, target_BM, count), hidden_BM

    def save(self, out: Writer) -> None:
        with writing(out.path / "reader", dataclasses.replace(out.origin, kind="reader")) as part:
            self.module.cpu().save(part.path)
            part.copy_folder(".", tokenizer_folder(self.settings.blocks))


def pretrain_reader(
    settings: PretrainSettings, corpus: Corpus, collator: Collator, retriever: Retriever
) -> PretrainReader:
    """Load the reader that the settings name. Raises what `PretrainReader.of` and `Registry.load` raise."""
    return READERS.load(settings.reader_name, PretrainReader).of(settings, corpus, collator, retriever)
