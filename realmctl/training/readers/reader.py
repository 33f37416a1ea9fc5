"""The seam between pre-training and its reader: hidden text and candidates in, log p(y|z,x) out.

Another reader is a class in a package of its own, by its entry point or room (`realmctl.readers`), and `pretrain --reader NAME`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Writer
from realmctl.corpus.corpus import Corpus
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.retriever import Retriever
from realmctl.spans.query import Query
from realmctl.spans.tagged_queries import Queries
from realmctl.training.names import READERS
from realmctl.training.objective import Sums
from realmctl.training.settings.pretrain import PretrainSettings


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


def pretrain_reader(
    settings: PretrainSettings, corpus: Corpus, collator: Collator, retriever: Retriever
) -> PretrainReader:
    """Load the reader that the settings name. Raises what `PretrainReader.of` and `Registry.load` raise."""
    return READERS.load(settings.reader_name, PretrainReader).of(settings, corpus, collator, retriever)
