"""`realmctl spider-init`: train a retriever on recurring spans (Spider), as a warm start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realmctl.pipeline import setting
from realmctl.training.starts.retriever import RetrieverStart

if TYPE_CHECKING:
    from realmctl.corpus.corpus import Corpus
    from realmctl.models.inputs import Collator
    from realmctl.models.retriever import Retriever
    from realmctl.training.objectives.in_batch import InBatchContrast


class SpiderInit(RetrieverStart):
    """Train a retriever on recurring spans: find the other block of a document that shares a rare span with the query.

    The query is a window of a block around the span, with the span or without it. A third block of the document, which lacks
    the span, is the hard negative (Spider, Ram et al. 2022). Documents need three blocks or more. Under torchrun each process
    takes a part of the batch. The negatives are the blocks of the whole batch.
    """

    steps: int = setting("Training steps. 0 keeps the untrained start.", default=200_000, at_least=0)
    batch_size: int = setting(
        "Documents per step. Each gives a query, its block and a hard negative; the other blocks of the batch are negatives too.",
        default=1024,
        at_least=2,
    )
    lr: float = setting("Peak learning rate.", default=2e-5, above=0)
    keep_rate: float = setting("Share of the queries that keep the span.", default=0.5, at_least=0, at_most=1)
    window: int = setting(
        "Most wordpieces around the span in a query; at least 5 are taken.", default=30, at_least=5, at_most=511
    )

    def objective(self, retriever: Retriever, corpus: Corpus, collator: Collator) -> InBatchContrast:
        from realmctl.tokens import wordpiece
        from realmctl.training.objectives.in_batch import ContrastOptions
        from realmctl.training.objectives.spider import SpiderObjective

        options = ContrastOptions(batch_size=self.batch_size, seed=self.seed, micro_batch=self.micro_batch)
        words = wordpiece.load(self.blocks.path)
        return SpiderObjective(
            retriever, corpus, collator, options, words, keep_rate=self.keep_rate, window=self.window
        )
