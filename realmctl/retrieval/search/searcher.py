"""Searchers retrieve blocks for a question and score them.

Fine-tuning, answering and evaluation retrieve blocks only through searchers.

Searchers are found by name (`finetune --retrieval NAME`), so that other packages can add some (docs/extending.md).
Legend: B and Q questions, K blocks of a question.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from torch import Tensor, nn

from realmctl.artifacts import Artifact, Writer
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.index.protocol import RowIds
from realmctl.models.inputs import Collator
from realmctl.models.precision import pick_device
from realmctl.retrieval.names import SEARCHERS
from realmctl.retrieval.search.block_search import BlockSearch, SearchInputs
from realmctl.tokens.tokenizer import Tokenizer


class Searcher(BlockSearch):
    """Base class of searchers: retrieves blocks for a question, and scores them. Fine-tuning trains and saves it."""

    uses_index: ClassVar[bool] = False
    """Whether it needs a retriever and an index."""

    def __init__(self, blocks: Artifact, device: str) -> None:
        self.device = pick_device(device)
        self.corpus, self.wordpiece = Corpus(blocks), Tokenizer.load(blocks.path)
        self.collator = Collator.of(self.wordpiece)

    @classmethod
    def check(cls, inputs: SearchInputs) -> None:
        """Check the inputs before any work. Raises a RealmctlError."""

    @classmethod
    @abstractmethod
    def start(cls, inputs: SearchInputs) -> Self:
        """Return a searcher that has not been trained on questions."""

    @classmethod
    @abstractmethod
    def reopen(cls, qa_model: Artifact, inputs: SearchInputs) -> Self:
        """Return the searcher that `save` wrote into a qa-model. `inputs` names no retriever, and may name another index."""

    @abstractmethod
    def save(self, out: Writer) -> None:
        """Write the searcher into a qa-model."""

    def prepare_training(self) -> None:
        """Prepare for fine-tuning, which calls this once at its start."""

    @property
    @abstractmethod
    def learner(self) -> nn.Module:
        """The module that fine-tuning trains."""

    @property
    def lr_multiplier(self) -> float:
        """Factor of the learning rate of `learner`."""
        return 1.0

    @abstractmethod
    def scores(self, tokens: Sequence[TokenIds], rows_QK: RowIds) -> Tensor:
        """Scores of these blocks with gradients, float32 [Q, K]."""

    def learnt(self) -> Mapping[str, float]:
        """Return learned numbers, which are logged at each step."""
        return {}


def searcher_type(name: str) -> type[Searcher]:
    """Return the searcher with this name. Raises ConfigError and ResourceError as `Registry.load`."""
    return SEARCHERS.load(name, Searcher)
