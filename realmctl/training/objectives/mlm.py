"""Masked language modelling: the warm start of an encoder, on blocks or as reading practice.

On blocks it is BERT's masking. Reading practice puts a tagged sentence before the block that restates it and hides salient
spans of the sentence, and for some of the visible spans their copies in the block. It teaches a small reader to copy
from the block, which masked blocks alone do not teach within the budget of a laptop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import BertForMaskedLM

from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.execution import processes
from realmctl.models.bert.encoder import states_at_places
from realmctl.models.inputs import Collator, TokenBatch
from realmctl.models.optimizer import layer_lr_multipliers
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.token_search import occurrences
from realmctl.training.data_order import DataOrder
from realmctl.training.objective import SelfContained, Sums
from realmctl.training.random_streams import Stream, generator
from realmctl.training.shared_draws import SharedDraws

# Probabilities that change results. They are not settings: if one changes, the version of `mlm-init` must increase.
MASKED_SHARE, RANDOM_SHARE = 0.8, 0.1
"""Of the hidden wordpieces, the shares replaced by [MASK] and by a random one (Devlin et al. 2019, section 3.1)."""
FIRST_ORDINARY_ID = 5
"""Random wordpieces are drawn from this id on: the ids below are the special tokens of a vocabulary trained by `chunk`."""
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


@dataclass(frozen=True)
class MlmBatch:
    """Inputs with masks, the flat positions of the hidden wordpieces (int64) and the wordpieces (int64)."""

    packed: TokenBatch
    positions: Tensor
    targets: Tensor


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

    def draw(self, step: int) -> Sequence[tuple[MlmBatch, int]]:
        """Micro-batches of this process, each with the number of hidden wordpieces in the whole batch of all processes."""
        drawn = unpacked(self.draws.of(step))
        hidden = sum(self.examples.hidden_in_room(example) for example in drawn)
        own = drawn[self.own]
        parts = [own[i : i + self.micro_batch] for i in range(0, len(own), self.micro_batch)]
        return [(self.examples.batch(part), hidden) for part in parts]

    def _whole_batch(self, step: int) -> NDArray[np.int64]:
        rng = generator(self.seed, Stream.MLM_MASKS, step)
        numbers = self.order.batch(step)
        return packed([self.examples.draw(int(number), rng, step / self.steps) for number in numbers])

    def loss(self, part: tuple[MlmBatch, int]) -> tuple[Tensor | None, Sums]:
        """Sum of the cross-entropies divided by the number of hidden wordpieces in the whole batch, and the accuracy."""
        batch, hidden = part
        if not len(batch.targets):
            return None, {}
        device = next(self.mlm.parameters()).device
        states_MH = states_at_places(self.mlm.bert, batch.packed.to(device), batch.positions)
        logits_MV = self.mlm.cls(states_MH).float()
        targets = batch.targets.to(device, non_blocking=True)
        loss = F.cross_entropy(logits_MV, targets, reduction="sum") / hidden
        return loss, {"accuracy": ((logits_MV.argmax(1) == targets).sum(), len(targets))}


@dataclass(frozen=True)
class Masked:
    """One or two sequences of wordpieces with masks, and the hidden (sequence, place, wordpiece) triples."""

    first: TokenIds
    second: TokenIds | None
    hidden: list[tuple[int, int, int]]


def packed(examples: Sequence[Masked]) -> NDArray[np.int64]:
    """Return examples as int64 numbers, for exchange between processes."""
    parts: list[NDArray[np.int64]] = []
    for example in examples:
        hidden = np.array(example.hidden, dtype=np.int64).ravel()
        second = np.empty(0, np.int64) if example.second is None else example.second
        sizes = [len(example.first), -1 if example.second is None else len(second), len(hidden)]
        parts += [np.array(sizes, dtype=np.int64), example.first.astype(np.int64), second.astype(np.int64), hidden]
    return np.concatenate(parts)


def unpacked(numbers: NDArray[np.int64]) -> list[Masked]:
    """Return the examples that `packed` was given."""
    examples, at = [], 0
    while at < len(numbers):
        first, second, hidden = (int(size) for size in numbers[at : at + 3])
        stops = np.cumsum([at + 3, first, max(second, 0), hidden])
        one, two, triples = (numbers[start:stop] for start, stop in pairwise(stops))
        places = [(int(s), int(p), int(t)) for s, p, t in triples.reshape(-1, 3)]
        examples.append(Masked(one, two if second >= 0 else None, places))
        at = int(stops[-1])
    return examples


def masked_as_bert(
    tokens: TokenIds, chosen: NDArray[np.int64], mask_id: int, vocabulary: int, rng: np.random.Generator
) -> Masked:
    """Hide the wordpieces at the places `chosen`, int64: 80 % become [MASK], 10 % a random wordpiece, and 10 % stay.

    mask_id: id of [MASK]. vocabulary: number of wordpieces.
    """
    masked: NDArray[np.int64] = np.array(tokens, dtype=np.int64)
    hidden = [(0, int(place), int(masked[place])) for place in chosen]
    drawn = rng.random(len(chosen))
    masked[chosen[drawn < MASKED_SHARE]] = mask_id
    other = chosen[(drawn >= MASKED_SHARE) & (drawn < MASKED_SHARE + RANDOM_SHARE)]
    masked[other] = rng.integers(FIRST_ORDINARY_ID, vocabulary, len(other))
    return Masked(masked, None, hidden)


class Examples:
    """The examples that a masked language model is trained on."""

    collator: Collator
    lengths: tuple[int, int]

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} has no length")

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Masked:
        """Example `number` with freshly drawn masks; `progress` is the share of the steps that are done."""
        raise TypeError(f"{type(self).__name__} draws nothing")

    def hidden_in_room(self, example: Masked) -> int:
        """Number of hidden wordpieces that are within the longest lengths, which `batch` keeps."""
        room = (self.lengths[0] - 2, self.lengths[1] - 2)
        return sum(place < room[sequence] for sequence, place, _ in example.hidden)

    def batch(self, drawn: Sequence[Masked]) -> MlmBatch:
        """Examples laid out as `[CLS] first [SEP]` or `[CLS] first [SEP] second [SEP]`."""
        seconds = [example.second for example in drawn if example.second is not None]
        firsts = [example.first for example in drawn]
        packed = (
            self.collator.joint(firsts, seconds, *self.lengths)
            if seconds
            else self.collator.query(firsts, self.lengths[0])
        )
        width, positions, targets = packed.ids_BL.shape[1], [], []
        for row, example in enumerate(drawn):
            behind = (1, min(len(example.first), self.lengths[0] - 2) + 2)
            room = (self.lengths[0] - 2, self.lengths[1] - 2)
            for sequence, place, wordpiece in example.hidden:
                if place < room[sequence]:
                    positions.append(row * width + behind[sequence] + place)
                    targets.append(wordpiece)
        return MlmBatch(packed, torch.tensor(positions, dtype=torch.long), torch.tensor(targets, dtype=torch.long))


class PlainBlocks(Examples):
    """Blocks with BERT's masking: of the hidden wordpieces 80 % become [MASK], 10 % a random one, and 10 % stay."""

    def __init__(self, corpus: Corpus, collator: Collator, *, mask_rate: float, length: int, vocabulary: int) -> None:
        self.corpus, self.collator, self.lengths = corpus, collator, (length, 0)
        self.mask_rate, self.vocabulary = mask_rate, vocabulary

    def __len__(self) -> int:
        return len(self.corpus)

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Masked:
        body = self.corpus.tokens(number)
        start = int(rng.integers(max(1, len(body) - self.lengths[0] + 3)))
        tokens = body[start : start + self.lengths[0] - 2]
        chosen = np.flatnonzero(rng.random(len(tokens)) < self.mask_rate)
        return masked_as_bert(tokens, chosen, self.collator.mask_id, self.vocabulary, rng)


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

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Masked:
        row = int(self.rows[number])
        block = int(rng.integers(len(self.corpus))) if rng.random() < RANDOM_BLOCK else int(self.partners[row])
        sentence = np.array(self.queries.tokens(row), dtype=np.int64)
        body = np.array(self.corpus.tokens(block), dtype=np.int64)
        spans = self.queries.spans_of(row)
        told = [k for k, (first, stop) in enumerate(spans) if len(occurrences(body, sentence[first:stop]))]
        told = told or list(range(len(spans)))
        chosen = int(rng.choice(told))
        asked = [k for k in told if k == chosen or rng.random() < HIDDEN_TOO]
        shown = [k for k in range(len(spans)) if k not in asked and rng.random() < HIDDEN_COPY]
        copies = [
            (at, at + len(copy))
            for copy in (sentence[slice(*spans[k])] for k in shown)
            for at in occurrences(body, copy)
        ]
        hidden: list[tuple[int, int, int]] = []
        self._hide(sentence, 0, [spans[k] for k in asked], hidden)
        self._hide(body, 1, copies, hidden)
        if rng.random() < NOISY_BLOCK:
            noise = np.flatnonzero(rng.random(len(body)) < BLOCK_NOISE)
            self._hide(body, 1, [(int(place), int(place) + 1) for place in noise], hidden)
        return Masked(sentence, body, hidden)

    def _hide(
        self,
        tokens: NDArray[np.int64],
        sequence: int,
        spans: Sequence[tuple[int, int]],
        hidden: list[tuple[int, int, int]],
    ) -> None:
        for first, stop in spans:
            for place in range(int(first), int(stop)):
                if tokens[place] != self.collator.mask_id:
                    hidden.append((sequence, place, int(tokens[place])))
                    tokens[place] = self.collator.mask_id
