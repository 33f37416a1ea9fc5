"""Masked language modelling: the warm start of an encoder, with BERT's masks on blocks. Rooms bring other examples (`MlmSettings.examples`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Writer, tokenizer_folder
from realmctl.artifacts.description import ENCODER, EncoderDescription, describe_encoder, write_description
from realmctl.corpus.corpus import Corpus
from realmctl.execution import processes
from realmctl.execution.batches import batched
from realmctl.models.bert.files import save_masked_lm
from realmctl.models.bert.modules import Encoder
from realmctl.models.encoder import states_at_places
from realmctl.models.families.known import mlm_logits
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.optimizer import layer_lr_multipliers
from realmctl.models.precision import to_device
from realmctl.spans.query import Query, hide_as_bert
from realmctl.tokens.frame import AROUND_ONE
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.data.draws import SharedDraws, Stream, generator
from realmctl.training.data.order import DataOrder
from realmctl.training.loop import train
from realmctl.training.names import RANDOM
from realmctl.training.objective import Objective, Sums
from realmctl.training.settings.encoder import MlmSettings
from realmctl.training.starts.encoder import SCRATCH, Head, starting_bert
from realmctl.training.starts.fitted import fitted_head


def train_mlm(settings: MlmSettings, out: Writer) -> dict[str, float]:
    """Train an encoder by masked language modelling, and write it with its head. Returns metrics."""
    head: Head = "trained" if settings.head_init == RANDOM else "any"
    mlm = starting_bert(None, settings.bert, settings.blocks, settings.seed, settings.dropout, head)
    corpus, words = Corpus(settings.blocks), Tokenizer.load(settings.blocks.path)
    metrics: dict[str, float] = {}
    if settings.head_init != RANDOM:
        found = fitted_head(settings.head_init).fit(mlm, corpus, Collator.of(words), settings, settings.length)
        metrics["decoded_at_start"] = found
    if settings.steps:
        examples = settings.examples(corpus, words) or PlainBlocks(
            corpus, Collator.of(words), mask_rate=settings.mask_rate, length=settings.length, ordinary=words.ordinary
        )
        objective = MlmObjective(mlm, examples, settings)
        metrics["examples"] = len(examples)
        metrics |= train(objective, settings, out, "mlm-init", chance=math.log(mlm.config.vocab_size))
    else:
        metrics["steps"] = 0
    save_masked_lm(mlm.cpu(), out.path)
    if not settings.bert.startswith(SCRATCH) and (before := describe_encoder(Path(settings.bert))):
        write_description(out.file(ENCODER), EncoderDescription(pooling=before.pooling))  # the head is out of date
    out.copy_folder(".", tokenizer_folder(settings.blocks))
    return metrics


class PlainBlocks:
    """Blocks with BERT's masking: of the hidden wordpieces 80 % become [MASK], 10 % a random one, and 10 % stay."""

    def __init__(
        self, corpus: Corpus, collator: Collator, *, mask_rate: float, length: int, ordinary: NDArray[np.int64]
    ) -> None:
        self.corpus, self.collator, self.lengths = corpus, collator, (length, 0)
        self.mask_rate, self.ordinary = mask_rate, ordinary

    def __len__(self) -> int:
        return len(self.corpus)

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Query:
        body = self.corpus.tokens(number)
        start = int(rng.integers(max(1, len(body) - self.lengths[0] + AROUND_ONE + 1)))
        tokens = body[start : start + self.lengths[0] - AROUND_ONE]
        chosen = np.flatnonzero(rng.random(len(tokens)) < self.mask_rate)
        return hide_as_bert(tokens, chosen, self.collator.mask_id, self.ordinary, rng)


class Examples(Protocol):
    """The queries that a masked language model is trained on. `lengths`: longest query, and longest text beside it."""

    collator: Collator
    lengths: tuple[int, int]

    def __len__(self) -> int: ...

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Query:
        """Return example `number` with freshly drawn masks; `progress` is the share of the steps that are done."""


class MlmObjective(Objective[tuple[QueryBatch, int]]):
    """Cross-entropy at the hidden wordpieces of `examples`."""

    def __init__(self, mlm: Encoder, examples: Examples, settings: MlmSettings) -> None:
        self.modules = nn.ModuleDict({"mlm": mlm})
        self.lr_multipliers = layer_lr_multipliers(mlm.base_model, settings.layer_decay)
        self.mlm, self.examples, self.settings = mlm, examples, settings
        self.order = DataOrder(len(examples), settings.batch_size, settings.seed)
        self.own = processes.share(settings.batch_size, "examples")
        self.draws = SharedDraws(self._whole_batch)

    def draw(self, step: int) -> Sequence[tuple[QueryBatch, int]]:
        """Micro-batches of this process, each with the number of hidden wordpieces in the whole batch of all processes."""
        drawn = self.draws.of(step)
        hidden = sum(query.hidden for query in drawn)
        parts = batched(drawn[self.own], self.settings.at_once)
        return [(self.examples.collator.queries(part, *self.examples.lengths), hidden) for part in parts]

    def _whole_batch(self, step: int) -> list[Query]:
        rng, done = generator(self.settings.seed, Stream.MLM_MASKS, step), step / self.settings.steps
        return [self.examples.draw(int(number), rng, done) for number in self.order.batch(step)]

    def loss(self, part: tuple[QueryBatch, int]) -> tuple[Tensor | None, Sums]:
        """Sum of the cross-entropies divided by the number of hidden wordpieces in the whole batch, and the accuracy."""
        batch, hidden = part
        target_M = batch.target_M
        if not len(target_M):
            return None, {}
        device = next(self.mlm.parameters()).device
        state_MH = states_at_places(self.mlm.base_model, batch.packed.to(device), batch.place_M)
        logits_MV = mlm_logits(self.mlm, state_MH).float()
        target_M = to_device(target_M, device)
        loss = F.cross_entropy(logits_MV, target_M, reduction="sum") / hidden
        return loss, {"accuracy": ((logits_MV.argmax(1) == target_M).sum(), len(target_M))}
