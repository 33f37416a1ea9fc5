"""The seam between pre-training and where its candidates come from: masked queries in, rows of blocks out. REALM's is `FromIndex`.

Another source is a class in a package of its own, by its entry point or room (`realmctl.candidate_sources`), and `pretrain --candidates-from NAME`.
Legend: B queries, K blocks of a query, D projection.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import Corpus
from realmctl.index.protocol import RowIds
from realmctl.spans.query import Query
from realmctl.training.names import CANDIDATE_SOURCES
from realmctl.training.refresh.index_in_use import IndexInUse
from realmctl.training.settings.pretrain import PretrainSettings


class CandidateSource(ABC):
    """What brings blocks to masked queries. It only chooses them: f(x, z) and p(z|x) are computed with the weights in training.

    The null document, the query's own block and copies are the caller's work: it asks for more blocks where these are left out.
    """

    def __init__(self, settings: PretrainSettings, corpus: Corpus, in_use: IndexInUse) -> None:
        self.settings, self.corpus, self.in_use = settings, corpus, in_use

    @abstractmethod
    def nearest(self, queries: Sequence[Query], query_BD: NDArray[np.float32], k: int) -> RowIds:
        """Return the rows of k blocks for each query, int64 [B, K], the best first. K is below k only where there are no more blocks.

        Args:
            queries: The masked queries.
            query_BD: Their vectors, made by the retriever in training.
            k: How many blocks of each.
        """


class FromIndex(CandidateSource):
    """The blocks of the largest inner product in the index in use (section 3.3)."""

    def nearest(self, queries: Sequence[Query], query_BD: NDArray[np.float32], k: int) -> RowIds:
        return self.in_use.index.search(query_BD, k)[1]


def candidate_source(settings: PretrainSettings, corpus: Corpus, in_use: IndexInUse) -> CandidateSource:
    """Return the source that the settings name. Raises ConfigError and ResourceError as `Registry.load`."""
    return CANDIDATE_SOURCES.load(settings.candidates_from, CandidateSource)(settings, corpus, in_use)
