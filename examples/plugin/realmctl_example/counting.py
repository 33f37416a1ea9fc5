"""The reader `counting` of `pretrain --reader`: a hidden wordpiece is as likely as it is frequent in the block."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Writer
from realmctl.corpus.corpus import Corpus
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.retriever import Retriever
from realmctl.spans.query import Query
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.readers import PretrainReader
from realmctl.training.settings.pretrain import PretrainSettings

UNSEEN = 0.01
"""What is added to the count of each wordpiece, so that none is impossible."""


class CountingReader(PretrainReader):
    """It has no weights and learns nothing; the retriever learns from it which blocks have the hidden words."""

    is_trained = False

    def __init__(self, queries: TaggedQueries, corpus: Corpus, wordpieces: int) -> None:
        self.module, self.queries, self.corpus, self.wordpieces = nn.Module(), queries, corpus, wordpieces

    @classmethod
    def of(cls, settings: PretrainSettings, corpus: Corpus, collator: Collator, retriever: Retriever) -> Self:
        words = Tokenizer.load(settings.blocks.path)
        return cls(TaggedQueries(settings.spans, corpus), corpus, words.rows)

    def hidden(self, query: Query) -> int:
        return query.hidden

    def read(self, asked: QueryBatch, rows_BN: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        shape = len(rows_BN), rows_BN.shape[1], asked.hidden_BM.shape[1]
        log_prob_BNM = np.zeros(shape, dtype=np.float32)
        for (query, place), row in np.ndenumerate(rows_BN):
            body = np.asarray(self.corpus.tokens(int(row))) if row >= 0 else np.empty(0, dtype=np.int64)
            for mask, wordpiece in enumerate(asked.queries[query].targets.tolist()):
                count = int((body == wordpiece).sum())
                log_prob_BNM[query, place, mask] = np.log((count + UNSEEN) / (len(body) + UNSEEN * self.wordpieces))
        return torch.from_numpy(log_prob_BNM), asked.hidden_BM

    def save(self, out: Writer) -> None:
        """There is nothing to write."""
