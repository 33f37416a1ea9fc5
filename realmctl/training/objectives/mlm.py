"""Masked language modelling: the warm start of an encoder, on blocks or as reading practice.

On blocks it is BERT's masking. Reading practice puts a tagged sentence before the block that restates it and hides salient
spans of the sentence, and for some of the visible spans their copies in the block. It teaches a small reader to copy
from the block, which masked blocks alone do not teach within the budget of a laptop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import BertForMaskedLM

from realmctl.corpus.corpus import Corpus
from realmctl.execution import processes
from realmctl.models.bert.encoder import states_at_places
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.optimizer import layer_lr_multipliers
from realmctl.spans.query import Query, hide, hide_as_bert
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.token_search import occurrences
from realmctl.training.data_order import DataOrder
from realmctl.training.objective import SelfContained, Sums
from realmctl.training.random_streams import Stream, generator
from realmctl.training.shared_draws import SharedDraws

# Probabilities that change results. They are not settings: if one changes, the version of `mlm-init` must increase.
HIDDEN_TOO = 0.3
"""Reading practice: probability that a further span that the block repeats is hidden.

The value is this project's choice.
"""
HIDDEN_COPY = 0.5
"""Reading practice: probability that a visible span's copies in the block are hidden.

The value is this project's choice.
"""
NOISY_BLOCK = 0.5
"""Reading practice: probability that a block has random wordpieces hidden. The value is this project's choice."""
BLOCK_NOISE = 0.03
"""Reading practice: share of the wordpieces hidden in such a block. The value is this project's choice."""
RANDOM_BLOCK = 0.15
"""Reading practice: probability that the block is a random one, from which nothing can be copied.

The value is this project's choice.
"""


class MlmObjective(SelfContained):
    """Cross-entropy at the hidden wordpieces of `examples`."""

    def __init__(
        self,
        mlm: BertForMaskedLM,
        examples: Examples,
        *,
        batch_size: int,
        micro_batch: int,
        seed: int,
        steps: int = 1,
        layer_decay: float = 1.0,
    ) -> None:
        self.steps = steps
        self.modules = nn.ModuleDict({"mlm": mlm})
        self.lr_multipliers = layer_lr_multipliers(mlm.bert, layer_decay)
        self.mlm, self.examples, self.seed = mlm, examples, seed
        self.micro_batch = micro_batch or batch_size
        self.order = DataOrder(len(examples), batch_size, seed)
        self.own = processes.share(batch_size, "examples")
        self.draws = SharedDraws(self._whole_batch)

    def draw(self, step: int) -> Sequence[tuple[QueryBatch, int]]:
        """Micro-batches of this process, each with the number of hidden wordpieces in the whole batch of all processes."""
        drawn = self.draws.of(step)
        hidden = sum(query.hidden for query in drawn)
        own = drawn[self.own]
        parts = [own[i : i + self.micro_batch] for i in range(0, len(own), self.micro_batch)]
        return [(self.examples.collator.queries(part, *self.examples.lengths), hidden) for part in parts]

    def _whole_batch(self, step: int) -> list[Query]:
        rng = generator(self.seed, Stream.MLM_MASKS, step)
        return [self.examples.draw(int(number), rng, step / self.steps) for number in self.order.batch(step)]

    def loss(self, part: tuple[QueryBatch, int]) -> tuple[Tensor | None, Sums]:
        """Sum of the cross-entropies divided by the number of hidden wordpieces in the whole batch, and the accuracy."""
        batch, hidden = part
        target_M = batch.target_M
        if not len(target_M):
            return None, {}
        device = next(self.mlm.parameters()).device
        state_MH = states_at_places(self.mlm.bert, batch.packed.to(device), batch.place_M)
        logits_MV = self.mlm.cls(state_MH).float()
        target_M = target_M.to(device, non_blocking=True)
        loss = F.cross_entropy(logits_MV, target_M, reduction="sum") / hidden
        return loss, {"accuracy": ((logits_MV.argmax(1) == target_M).sum(), len(target_M))}


class Examples(ABC):
    """The queries that a masked language model is trained on. `lengths`: longest query, and longest text beside it."""

    collator: Collator
    lengths: tuple[int, int]

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Query:
        """Example `number` with freshly drawn masks; `progress` is the share of the steps that are done."""


class PlainBlocks(Examples):
    """Blocks with BERT's masking: of the hidden wordpieces 80 % become [MASK], 10 % a random one, and 10 % stay."""

    def __init__(self, corpus: Corpus, collator: Collator, *, mask_rate: float, length: int, vocabulary: int) -> None:
        self.corpus, self.collator, self.lengths = corpus, collator, (length, 0)
        self.mask_rate, self.vocabulary = mask_rate, vocabulary

    def __len__(self) -> int:
        return len(self.corpus)

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Query:
        body = self.corpus.tokens(number)
        start = int(rng.integers(max(1, len(body) - self.lengths[0] + 3)))
        tokens = body[start : start + self.lengths[0] - 2]
        chosen = np.flatnonzero(rng.random(len(tokens)) < self.mask_rate)
        return hide_as_bert(tokens, chosen, self.collator.mask_id, self.vocabulary, rng)


class ReadingPractice(Examples):
    """Sentences, each together with the block that restates it.

    One span that the block repeats is hidden in the sentence, and each further one with probability 0.3. Of the spans that
    stay visible, half have their copies in the block hidden. For 15 % of the sentences the block is a random one, from which
    nothing can be copied.
    """

    def __init__(
        self,
        queries: TaggedQueries,
        corpus: Corpus,
        partners: NDArray[np.int64],
        collator: Collator,
        *,
        lengths: tuple[int, int],
    ) -> None:
        self.queries, self.corpus, self.partners = queries, corpus, partners
        self.collator, self.lengths = collator, lengths
        self.rows = np.flatnonzero(partners >= 0)

    def __len__(self) -> int:
        return len(self.rows)

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Query:
        row = int(self.rows[number])
        block = int(rng.integers(len(self.corpus))) if rng.random() < RANDOM_BLOCK else int(self.partners[row])
        sentence, body = self.queries.tokens(row), self.corpus.tokens(block)
        spans = self.queries.spans_of(row).tolist()
        told = [k for k, (first, stop) in enumerate(spans) if len(occurrences(body, sentence[first:stop]))]
        told = told or list(range(len(spans)))
        chosen = int(rng.choice(told))
        asked = [k for k in told if k == chosen or rng.random() < HIDDEN_TOO]
        shown = [k for k in range(len(spans)) if k not in asked and rng.random() < HIDDEN_COPY]
        copies = [
            at + place
            for copy in (sentence[slice(*spans[k])] for k in shown)
            for at in occurrences(body, copy)
            for place in range(len(copy))
        ]
        noise = np.flatnonzero(rng.random(len(body)) < BLOCK_NOISE).tolist() if rng.random() < NOISY_BLOCK else []
        mask_id, places = self.collator.mask_id, [place for k in asked for place in range(*spans[k])]
        query = hide(sentence, places, mask_id, beside=hide(body, [*copies, *noise], mask_id))
        return query.cut(self.lengths[0] - 2, self.lengths[1] - 2)
