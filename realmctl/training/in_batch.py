"""In-batch contrast: each query has to find its block among the blocks of the whole batch of all processes.

A task says what an example is. Everything else is here: the order of the data, the division among processes, the gradient
cache and the loss.
Legend: B examples of this process, K blocks of an example, C blocks of all processes, D projection.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from realmctl.artifacts import Writer, tokenizer_folder
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.execution import processes
from realmctl.execution.batches import batched
from realmctl.models.in_batch import divergence, in_batch_scores, in_batch_softmax
from realmctl.models.inputs import Collator, TokenBatch
from realmctl.models.precision import to_device
from realmctl.models.retriever import Retriever
from realmctl.training.data.order import DataOrder
from realmctl.training.data_parallel import all_gather, gather_rows
from realmctl.training.evaluation.on_cloze import train_on_cloze
from realmctl.training.gradient_cache import CachedGradient, contrasted, prepared
from realmctl.training.objective import Objective, Sums
from realmctl.training.settings.retriever import ContrastSettings, RetrieverTrainingSettings
from realmctl.training.starts.retriever import starting_retriever


@dataclass(frozen=True)
class Example:
    """A query and its blocks.

    blocks: (title, body), first the block to find, then hard negatives. All examples of a task have equally many.
    names: A number from 0 to 2^64 - 1 for each block. Equal ones are one block, whole or with a sentence cut out.
    marks: Facts about the example by name. Their shares of the batch are logged.
    withheld: The block to find is excluded from the query's softmax, so that the null document is the target.
    known: Names of further blocks that answer the query. None of them is its negative.
    """

    query: TokenIds
    blocks: tuple[tuple[TokenIds, TokenIds], ...]
    names: tuple[int, ...]
    marks: Mapping[str, bool] = field(default_factory=dict)
    withheld: bool = False
    known: Collection[int] = ()


@dataclass(frozen=True)
class PairChunk:
    """Examples that are computed at once. `blocks` has K rows for each query. The last chunk may have the null document.

    start_BC: float32, the scores of the frozen start for these queries, over the blocks of all processes, and the null document; where
    nothing is distilled, None. name_C: int64, the names of the blocks of all processes.
    """

    queries: TokenBatch
    blocks: TokenBatch
    null: TokenBatch | None
    examples: Sequence[Example]
    name_C: Tensor
    cached: CachedGradient | None = None
    start_BC: Tensor | None = None


class InBatchContrast(Objective[PairChunk]):
    """Base of the tasks.

    Another place of the block to find is no negative: it may stand in the batch again, where a pass over the corpus ends or two questions
    have one passage, or as a hard negative. Nor is any other block that is known to answer the query. They are left out of its softmax. The public codes of ORQA, DPR, Spider
    and Contriever count it as a negative.

    With `distill_start` the loss has a second term: the divergence of the batch's softmax from that of the retriever before
    training, which stays frozen. So what the retriever knew of other texts is kept longer.

    Args:
        retriever: The retriever to train.
        collator: Lays out wordpieces.
        settings: Batch size, micro-batch and seed.
        count: How many things there are to make examples of, such as blocks or documents. A batch has at most so many.
        order: Their order; by default passes over all of them.
        null: Whether the null document is one of the blocks to choose from.
    """

    def __init__(
        self,
        retriever: Retriever,
        collator: Collator,
        settings: ContrastSettings,
        *,
        count: int,
        order: DataOrder | None = None,
        null: bool = False,
    ) -> None:
        self.modules = nn.ModuleDict({"retriever": retriever})
        self.retriever, self.collator, self.settings = retriever, collator, settings
        self.null = null
        self.start = copy.deepcopy(retriever).eval().requires_grad_(False) if settings.distill_start else None
        self.order = order or DataOrder(count, min(settings.batch_size, count), settings.seed)
        self.own = processes.share(self.order.batch_size, "pairs")

    blocks_each: int = 1
    """Blocks of an example: the one to find, and hard negatives."""

    @property
    def chance(self) -> float:
        """The loss where all blocks of a batch have equal scores, in nats."""
        return math.log(self.order.batch_size * self.blocks_each + self.null)

    @abstractmethod
    def examples(self, step: int) -> list[Example]:
        """Return this process's examples of a step. They depend on seed and step alone."""

    def draw(self, step: int) -> Sequence[PairChunk]:
        """Return this process's examples of a step: one chunk, or several with what the gradient cache computed."""
        own = self.examples(step)
        parts, name_C = batched(own, self.settings.micro_batch), self._names(own)
        chunks = [self._chunk(part, name_C, part is parts[-1]) for part in parts]
        start_BC = self._start_scores(chunks) if self.start else None
        chunks = [replace(chunk, start_BC=start_BC) for chunk in chunks]
        contrast = partial(self._contrast, own, name_C, start_BC)
        return prepared(chunks, partial(self._embed, self.retriever), contrast, self._device)

    @staticmethod
    def _names(own: Sequence[Example]) -> Tensor:
        """The names of the blocks of all processes, int64 [C]."""
        name_X = np.array([name for example in own for name in example.names], dtype=np.uint64).view(np.int64)
        return torch.from_numpy(np.concatenate(gather_rows(name_X)))

    @staticmethod
    def _answers(examples: Sequence[Example], name_C: Tensor) -> Tensor:
        """Which blocks are known to answer each query, beside the one to find, bool [B, C]."""
        names, found = name_C.numpy().view(np.uint64), np.zeros((len(examples), len(name_C)), np.bool_)
        for row, each in enumerate(examples):
            if each.known:
                found[row] = np.isin(names, np.fromiter(each.known, np.uint64, len(each.known)))
        return torch.from_numpy(found)

    @torch.no_grad()
    def _start_scores(self, chunks: Sequence[PairChunk]) -> Tensor:
        """The scores of the frozen start for all queries of this process."""
        assert self.start is not None
        embedded = [self._embed(self.start.to(self._device), chunk) for chunk in chunks]
        query_BD, block_XD, null_ND = (torch.cat(each) for each in zip(*embedded, strict=True))
        return in_batch_scores(query_BD, torch.cat([all_gather(block_XD), null_ND]))

    def _chunk(self, examples: Sequence[Example], name_C: Tensor, last: bool) -> PairChunk:
        titles, bodies = zip(*(block for example in examples for block in example.blocks), strict=True)
        return PairChunk(
            queries=self.retriever.pack_queries(
                self.collator, [example.query for example in examples], self.retriever.query_length
            ),
            blocks=self.retriever.pack_blocks(self.collator, titles, bodies),
            null=self.retriever.pack_blocks(self.collator, [[]], [[]]) if self.null and last else None,
            examples=examples,
            name_C=name_C,
        )

    def loss(self, part: PairChunk) -> tuple[Tensor, Sums]:
        """Cross-entropy of the softmax over the batch's blocks, from query to block, with what is distilled, and the accuracy."""
        if part.cached is not None:
            part.cached.restore_random_state(self._device)
        embeddings = self._embed(self.retriever, part)
        contrast = partial(self._contrast, part.examples, part.name_C, part.start_BC)
        loss, accuracy = contrasted(part, embeddings, contrast)
        count = len(part.examples)
        sums: dict[str, tuple[float | Tensor, float]] = {"accuracy": (accuracy * count, float(count))}
        for name in part.examples[0].marks:
            sums[name] = (float(sum(example.marks[name] for example in part.examples)), float(count))
        return loss / processes.world_size(), sums

    @property
    def _device(self) -> torch.device:
        return next(self.retriever.parameters()).device

    def _embed(self, retriever: Retriever, chunk: PairChunk) -> tuple[Tensor, Tensor, Tensor]:
        """The embeddings of queries [B, D], blocks [B * K, D] and null document [0 or 1, D]."""
        query_BD = retriever.embed_queries(chunk.queries.to(self._device))
        block_XD = retriever.embed_blocks(chunk.blocks.to(self._device))
        if chunk.null is None:
            return query_BD, block_XD, block_XD[:0]
        return query_BD, block_XD, retriever.embed_blocks(chunk.null.to(self._device))

    def _contrast(
        self,
        examples: Sequence[Example],
        name_C: Tensor,
        start_BC: Tensor | None,
        query_BD: Tensor,
        block_XD: Tensor,
        null_ND: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Loss and accuracy of all queries of this process among the blocks of all processes."""
        block_CD = all_gather(block_XD)
        answers_BC = to_device(self._answers(examples, name_C), block_CD.device)
        name_C = to_device(name_C, block_CD.device)
        target_B = to_device(torch.arange(self.own.start, self.own.stop) * len(examples[0].blocks), block_CD.device)
        counts_BC = ((name_C != name_C[target_B][:, None]) & ~answers_BC).scatter(1, target_B[:, None], True)
        if len(null_ND):
            withheld_B = to_device(torch.tensor([example.withheld for example in examples]), block_CD.device)
            counts_BC = nn.functional.pad(
                counts_BC.scatter(1, target_B[:, None], ~withheld_B[:, None]), (0, 1), value=True
            )
            target_B = target_B.masked_fill(withheld_B, len(block_CD))
        score_BC = in_batch_scores(query_BD, torch.cat([block_CD, null_ND]), counts_BC)
        loss, accuracy = in_batch_softmax(score_BC, target_B)
        if start_BC is not None:
            start_BC = start_BC.masked_fill(~counts_BC, torch.finfo(torch.float32).min)
            loss = loss + self.settings.distill_start * divergence(score_BC, start_BC)
        return loss, accuracy


S = TypeVar("S", bound=RetrieverTrainingSettings)


def train_retriever(
    settings: S, out: Writer, what: str, task: Callable[[Retriever, Corpus, Collator, S], InBatchContrast]
) -> dict[str, float]:
    """Train a retriever at a task, from its start, and write it. Without steps the start is written. Returns metrics."""
    retriever, corpus, collator = starting_retriever(settings, out)
    metrics: dict[str, float] = {"steps": 0}
    if settings.steps:
        objective = task(retriever, corpus, collator, settings)
        metrics = train_on_cloze(objective, retriever, settings, settings.blocks, out, what, chance=objective.chance)
    retriever.cpu().save(out.path)
    out.copy_folder("tokenizer", tokenizer_folder(settings.blocks))
    if settings.retriever is not None:  # a start that is kept
        out.link_equal(settings.retriever)
    return metrics
