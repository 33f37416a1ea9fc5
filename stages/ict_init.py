"""`realmctl ict-init`: train a retriever on the inverse cloze task, as a warm start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realmctl.deviations import IctDeviation, explained
from realmctl.pipeline import setting
from realmctl.training.starts.retriever import RetrieverStart

if TYPE_CHECKING:
    from realmctl.corpus.corpus import Corpus
    from realmctl.models.inputs import Collator
    from realmctl.models.retriever import Retriever
    from realmctl.training.objectives.in_batch import InBatchContrast


class IctInit(RetrieverStart):
    """Train a retriever on the inverse cloze task: find the block that a sentence was taken from.

    Under torchrun each process takes a part of the batch. The negatives are the blocks of the whole batch.
    """

    batch_size: int = setting(
        "Pairs of a sentence and a block per step; the other blocks of the batch are the negatives.",
        default=4096,
        at_least=2,
    )
    mask_rate: float = setting(
        "Share of the pairs in which the sentence is removed from its block.", default=0.9, at_least=0, at_most=1
    )
    null_share: float = setting(
        "Share of the sentences that may not choose their block, so that the null document is right. 0 is ORQA's task.",
        default=0.0,
        at_least=0,
        below=1,
    )
    official: tuple[IctDeviation, ...] = setting(
        explained(IctDeviation),
        default=(),
    )

    def objective(self, retriever: Retriever, corpus: Corpus, collator: Collator) -> InBatchContrast:
        from realmctl.training.objectives.ict import InverseClozeObjective
        from realmctl.training.objectives.in_batch import ContrastOptions

        options = ContrastOptions(batch_size=self.batch_size, seed=self.seed, micro_batch=self.micro_batch)
        return InverseClozeObjective(
            retriever,
            corpus,
            collator,
            options,
            mask_rate=self.mask_rate,
            null_share=self.null_share,
            single_sentences="single-sentences" in self.official,
        )
