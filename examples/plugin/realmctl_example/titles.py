"""The objective of `title-init`: find the first block of a document by the document's title."""

from __future__ import annotations

import numpy as np

from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.training.data.own_blocks import rows_by_document
from realmctl.training.in_batch import Example, InBatchContrast
from realmctl.training.settings.retriever import RetrieverTrainingSettings


class TitleObjective(InBatchContrast):
    """The query is the title, which the block is embedded without. The other blocks of the batch are the negatives."""

    def __init__(
        self, retriever: Retriever, corpus: Corpus, collator: Collator, settings: RetrieverTrainingSettings
    ) -> None:
        self.corpus = corpus
        first = [int(rows[0]) for rows in rows_by_document(corpus)]
        self.rows = np.array([row for row in first if len(corpus.title(row))])
        if len(self.rows) < 2:
            raise InputError(f"{corpus.artifact} has {len(self.rows)} documents with a title; title-init needs 2.")
        super().__init__(retriever, collator, settings, count=len(self.rows))

    def examples(self, step: int) -> list[Example]:
        rows = self.rows[self.order.batch(step)][self.own]
        nothing = np.empty(0, dtype=np.int64)
        return [
            Example(self.corpus.title(row), ((nothing, self.corpus.tokens(row)),), (int(self.corpus.uid[row]),))
            for row in rows.tolist()
        ]
