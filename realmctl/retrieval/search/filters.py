"""Filters of a search: which blocks may be hits, by the fields of their documents. Their language is that of a room (`FILTERS`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from realmctl.corpus.columns import Columns
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.fields import FieldType
from realmctl.index.protocol import RowIds
from realmctl.retrieval.names import FILTERS


class BlockFilter(ABC):
    """A filter that was read for blocks with some fields. Raises ConfigError for what is no filter of these."""

    names: set[str]
    """The fields that it names."""

    @abstractmethod
    def __init__(self, text: str, types: Mapping[str, FieldType]) -> None: ...

    @abstractmethod
    def rows(self, columns: Columns) -> RowIds:
        """Return the rows of the blocks that pass, rising, int64."""


def filter_of(text: str, corpus: Corpus) -> BlockFilter:
    """Read a filter for blocks. Raises ConfigError."""
    return FILTERS.load("expression", BlockFilter)(text, corpus.columns.types)


def filtered(filters: str | Sequence[str] | None, corpus: Corpus) -> RowIds | None:
    """Return the rows of the blocks that pass a filter, or all of several, rising, int64; None without a filter: all. Raises ConfigError."""
    found: RowIds | None = None
    for text in [filters] if isinstance(filters, str) else filters or ():
        rows = filter_of(text, corpus).rows(corpus.columns)
        found = rows if found is None else np.intersect1d(found, rows, assume_unique=True)
    return found
