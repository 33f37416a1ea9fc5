"""The source `bm25` of `pretrain --candidates-from`: blocks that share words with the sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import Corpus
from realmctl.index.protocol import RowIds
from realmctl.retrieval.search.block_search import SearchInputs
from realmctl.retrieval.search.bm25 import BM25Searcher
from realmctl.spans.query import Query
from realmctl.training.candidate_source import CandidateSource
from realmctl.training.refresh.index_in_use import IndexInUse
from realmctl.training.settings.pretrain import PretrainSettings


class FromBM25(CandidateSource):
    """The best blocks by BM25. What is hidden is [MASK] in the query, which no block has."""

    def __init__(self, settings: PretrainSettings, corpus: Corpus, in_use: IndexInUse) -> None:
        super().__init__(settings, corpus, in_use)
        self.bm25 = BM25Searcher.start(SearchInputs(blocks=settings.blocks, device="cpu"))

    def nearest(self, queries: Sequence[Query], query_BD: NDArray[np.float32], k: int) -> RowIds:
        return self.bm25.nearest([query.tokens for query in queries], k)[1]
