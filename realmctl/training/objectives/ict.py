"""The inverse cloze task: find the block that a sentence was taken from (ORQA, section 4; orqa/models/ict_model.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from realmctl.errors import InputError
from realmctl.execution import processes
from realmctl.nn.inputs import Collator, TokenBatch
from realmctl.nn.marginal import in_batch_softmax
from realmctl.nn.retriever import Retriever
from realmctl.retrieval.corpus import Corpus, TokenIds
from realmctl.retrieval.search.candidates import NULL, titles_and_bodies
from realmctl.training.data_order import DataOrder, ThinnedDataOrder
from realmctl.training.data_parallel import all_gather
from realmctl.training.objective import SelfContained, Sums
from realmctl.training.random_streams import Stream, generator


@dataclass(frozen=True)
class SentenceBlockPair:
    """A sentence and the block that it was taken from.

    `masked`: the sentence was removed from the block. `withheld`: that block is excluded from the sentence's softmax,
    so that the null document is the target.
    """

    sentence: TokenIds
    title: TokenIds
    body: TokenIds
    masked: bool
    withheld: bool


class InverseClozeObjective(SelfContained):
    """Each block of two sentences or more gives a pair. The other blocks of the batch are the negatives.

    With `single_sentences` a block of one sentence gives a pair as often as a sentence stays in its block, and its sentence
    stays in it. The official code draws such blocks like all others, and leaves out those whose sentence is to be removed.

    `null_share` is not in ORQA: the null document is added to the blocks, and is the target for that share of the
    sentences. Without it, ICT leaves the null document's score so far below every block's that p(null|x) and its
    gradient are 0 in pre-training. With several processes, each takes a part of the pairs; the negatives are those of
    the whole batch.
    """

    def __init__(
        self, retriever: Retriever, corpus: Corpus, collator: Collator, *,
        batch_size: int, mask_rate: float, null_share: float = 0.0, single_sentences: bool = False, seed: int,
    ) -> None:  # fmt: skip
        self.modules = nn.ModuleDict({"retriever": retriever})
        self.retriever, self.corpus, self.collator = retriever, corpus, collator
        self.mask_rate, self.null_share, self.seed = mask_rate, null_share, seed
        sentences = np.diff(corpus.sentence_offsets)
        self.rows = np.flatnonzero(sentences >= (2 if mask_rate > 0 else 1))
        if len(self.rows) < 2:
            raise InputError(
                f"{corpus.artifact} has {len(self.rows)} blocks of two sentences or more; ICT needs at least 2."
            )
        size = min(batch_size, len(self.rows))
        if single_sentences and mask_rate > 0:
            single = np.flatnonzero(sentences == 1)
            self.order: DataOrder = ThinnedDataOrder(len(self.rows), len(single), 1 - mask_rate, size, seed)
            self.rows = np.concatenate([self.rows, single])
        else:
            self.order = DataOrder(len(self.rows), size, seed)
        self.own = processes.share(self.order.batch_size, "pairs")

    def draw(self, step: int) -> Sequence[tuple[TokenBatch, TokenBatch, list[SentenceBlockPair]]]:
        """One part, because in-batch negatives need the whole batch at once. It has the pairs of this process.

        The random numbers of the others' pairs are drawn too, and nothing of their text is read.
        """
        rng = generator(self.seed, Stream.ICT_SENTENCES, step)
        drawn = [(row, *self._draw(row, rng)) for row in self.rows[self.order.batch(step)].tolist()]
        pairs = [self._pair(*each) for each in drawn[self.own]]
        queries = self.collator.query([pair.sentence for pair in pairs], self.retriever.query_length)
        blocks = self.collator.block(
            [pair.title for pair in pairs], [pair.body for pair in pairs], self.retriever.block_length
        )
        return [(queries, blocks, pairs)]

    def _draw(self, row: int, rng: np.random.Generator) -> tuple[int, bool, bool]:
        """Return the number of the sentence, whether it is removed from the block, and whether the block is withheld."""
        first, stop = self.corpus.sentence_offsets[row : row + 2]
        sentence = int(rng.integers(int(stop - first)))
        masked = bool(rng.random() < self.mask_rate) and stop - first > 1
        return sentence, masked, self.null_share > 0 and bool(rng.random() < self.null_share)

    def _pair(self, row: int, k: int, masked: bool, withheld: bool) -> SentenceBlockPair:
        body, starts = self.corpus.tokens(row), self.corpus.sentences(row)
        start, stop = int(starts[k]), int(starts[k + 1]) if k + 1 < len(starts) else len(body)
        rest = np.concatenate([body[:start], body[stop:]]) if masked else body
        return SentenceBlockPair(body[start:stop], self.corpus.title(row), rest, masked, withheld)

    def loss(self, part: tuple[TokenBatch, TokenBatch, list[SentenceBlockPair]]) -> tuple[Tensor, Sums]:
        """Cross-entropy of the softmax over the batch's blocks, from query to block, and the accuracy."""
        queries, blocks, pairs = part
        device = next(self.retriever.parameters()).device
        query_BD = self.retriever.embed_queries(queries.to(device))
        block_CD = all_gather(self.retriever.embed_blocks(blocks.to(device)))
        target_B, mask_BC = torch.arange(self.own.start, self.own.stop, device=device), None
        if self.null_share:
            block_CD, target_B, mask_BC = self._with_null(block_CD, target_B, pairs)
        loss, accuracy = in_batch_softmax(query_BD, block_CD, target_B, mask_BC)
        count = len(pairs)
        return loss / processes.world_size(), {
            "accuracy": (float(accuracy) * count, count),
            "masked": (sum(pair.masked for pair in pairs), count),
        }

    def _with_null(
        self, block_CD: Tensor, target_B: Tensor, pairs: Sequence[SentenceBlockPair]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Add the null document. Return the blocks, the targets, and whether each block is in each query's softmax."""
        null = self.collator.block(*titles_and_bodies(self.corpus, np.array([NULL])))
        null_1D = self.retriever.embed_blocks(null.to(block_CD.device))
        withheld_B = torch.tensor([pair.withheld for pair in pairs], device=block_CD.device)
        mask_BC = torch.ones(len(pairs), len(block_CD) + 1, dtype=torch.bool, device=block_CD.device)
        mask_BC[withheld_B, target_B[withheld_B]] = False
        return torch.cat([block_CD, null_1D]), target_B.masked_fill(withheld_B, len(block_CD)), mask_BC
