"""Masked language modelling: an encoder's warm start, plain or as reading practice.

Plain is BERT's 15 % with 80/10/10. Reading practice lays a tagged sentence beside the block that restates it, hides
salient spans of the sentence and, half of the time, the block's copy of the others: what makes a small reader learn to
copy from its block, where plain masking does not within a laptop's budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import BertForMaskedLM

from realmctl.nn.bert.encoder import hidden_states
from realmctl.nn.inputs import Collator, TokenBatch
from realmctl.retrieval.corpus import Corpus, TokenIds
from realmctl.retrieval.tagged_queries import TaggedQueries
from realmctl.training.data_order import DataOrder
from realmctl.training.objective import SelfContained, Sums
from realmctl.training.random_streams import Stream, generator

HIDDEN_TOO = 0.3
HIDDEN_COPY = 0.5
BLOCK_NOISE = 0.03
RANDOM_BLOCK = 0.15


@dataclass(frozen=True)
class MlmBatch:
    """TokenBatch inputs with masks in, and which positions (flat, int64) hold which hidden wordpieces (int64)."""

    packed: TokenBatch
    positions: Tensor
    targets: Tensor


class MlmObjective(SelfContained):
    """Cross-entropy at masked positions; `example(number, rng)` gives (ids with masks, segments, positions, targets)."""

    def __init__(
        self, mlm: BertForMaskedLM, examples: Examples, *, batch_size: int, micro_batch: int, seed: int, steps: int = 1
    ) -> None:
        self.steps = steps
        self.modules = nn.ModuleDict({"mlm": mlm})
        self.mlm, self.examples, self.seed = mlm, examples, seed
        self.micro_batch = micro_batch or batch_size
        self.order = DataOrder(len(examples), batch_size, seed)

    def draw(self, step: int) -> Sequence[tuple[MlmBatch, int]]:
        """Micro-batches, each with the number of hidden wordpieces of the whole batch."""
        rng = generator(self.seed, Stream.MLM_MASKS, step)
        drawn = [self.examples.draw(int(number), rng, step / self.steps) for number in self.order.batch(step)]
        parts = [drawn[i : i + self.micro_batch] for i in range(0, len(drawn), self.micro_batch)]
        batches = [self.examples.batch(part) for part in parts]
        hidden = sum(len(batch.targets) for batch in batches)
        return [(batch, hidden) for batch in batches]

    def loss(self, part: tuple[MlmBatch, int]) -> tuple[Tensor | None, Sums]:
        """Mean cross-entropy over the whole batch's hidden wordpieces, and accuracy."""
        batch, hidden = part
        if not len(batch.targets):
            return None, {}
        device = next(self.mlm.parameters()).device
        state_BLH = hidden_states(self.mlm.bert, batch.packed.to(device))
        logits_MV = self.mlm.cls(state_BLH.flatten(0, 1)[batch.positions.to(device)]).float()
        targets = batch.targets.to(device)
        loss = F.cross_entropy(logits_MV, targets, reduction="sum") / hidden
        right = float((logits_MV.argmax(1) == targets).sum())
        return loss, {"accuracy": (right, len(targets))}


@dataclass(frozen=True)
class Masked:
    """One or two token sequences with masks put in, and the hidden (sequence, place, wordpiece) triples."""

    first: TokenIds
    second: TokenIds | None
    hidden: list[tuple[int, int, int]]


class Examples:
    """What a masked language model is trained on."""

    collator: Collator
    lengths: tuple[int, int]

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} has no length")

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Masked:
        """Example `number` with freshly drawn masks; `progress` is the share of the steps that are done."""
        raise TypeError(f"{type(self).__name__} draws nothing")

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
    """Blocks with BERT's masking: a share of the wordpieces, of which 80 % masked, 10 % random, 10 % left."""

    def __init__(self, corpus: Corpus, collator: Collator, *, mask_rate: float, length: int, vocabulary: int) -> None:
        self.corpus, self.collator, self.lengths = corpus, collator, (length, 0)
        self.mask_rate, self.vocabulary = mask_rate, vocabulary

    def __len__(self) -> int:
        return len(self.corpus)

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Masked:
        body = self.corpus.tokens(number)
        start = int(rng.integers(max(1, len(body) - self.lengths[0] + 3)))
        tokens = np.array(body[start : start + self.lengths[0] - 2], dtype=np.int64)
        chosen = np.flatnonzero(rng.random(len(tokens)) < self.mask_rate)
        hidden = [(0, int(place), int(tokens[place])) for place in chosen]
        fate = rng.random(len(chosen))
        tokens[chosen[fate < 0.8]] = self.collator.mask_id
        other = chosen[(fate >= 0.8) & (fate < 0.9)]
        tokens[other] = rng.integers(5, self.vocabulary, len(other))
        return Masked(tokens, None, hidden)


class ReadingPractice(Examples):
    """Sentences beside the blocks that restate them.

    One span that the block tells is hidden in the sentence (each other such one at 30 %); of those left visible, half
    have their copies hidden in the block. For 15 % of the sentences the block is a random one, where nothing can be copied.
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
        if rng.random() < 0.5:
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


def occurrences(tokens: NDArray[np.int64], needle: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where `needle` begins in `tokens`, int64."""
    if not 0 < len(needle) <= len(tokens):
        return np.empty(0, dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(tokens, len(needle))
    return np.flatnonzero((windows == needle).all(axis=1))
