"""Masked language modelling: the warm start of an encoder, on blocks or as reading practice.

On blocks it is BERT's masking. Reading practice puts a tagged sentence before the block that restates it and hides salient
spans of the sentence, and for some of the visible spans their copies in the block. It teaches a small reader to copy
from the block, which masked blocks alone do not teach within the budget of a laptop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BertForMaskedLM

from realmctl.execution import processes
from realmctl.models.bert.encoder import states_at_places
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.optimizer import layer_lr_multipliers
from realmctl.spans.query import Query
from realmctl.training.data.draws import SharedDraws, Stream, generator
from realmctl.training.data.order import DataOrder
from realmctl.training.objective import SelfContained, Sums


class Examples(Protocol):
    """The queries that a masked language model is trained on. `lengths`: longest query, and longest text beside it."""

    collator: Collator
    lengths: tuple[int, int]

    def __len__(self) -> int: ...

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Query:
        """Return example `number` with freshly drawn masks; `progress` is the share of the steps that are done."""


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
