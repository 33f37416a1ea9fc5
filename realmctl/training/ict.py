"""Pairs out of single blocks: the inverse cloze task (ORQA, section 4; orqa/models/ict_model.py)."""

from __future__ import annotations

import numpy as np

from realmctl.artifacts import Writer
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import ThinnedDataOrder
from realmctl.training.evaluation.cloze_recall import held_out
from realmctl.training.evaluation.held_out import left_out
from realmctl.training.in_batch import Example, InBatchContrast, train_retriever
from realmctl.training.settings.retriever import IctSettings


class InverseClozeObjective(InBatchContrast):
    """Each block of two sentences or more gives a pair. The other blocks of the batch are the negatives.

    With the deviation `single-sentences` a block of one sentence gives a pair as often as a sentence stays in its block, and its sentence
    stays in it. The official code draws such blocks like all others, and leaves out those whose sentence is to be removed.

    `null_share` is not in ORQA: the null document is added to the blocks, and is the target for that share of the
    sentences. Without it, ICT leaves the null document's score so far below every block's that p(null|x) and its
    gradient are 0 in pre-training.

    With `cloze_recall` the sentences that measure the training are no queries of it, but where a block has no other, and the documents of
    the questions that measure it have no part in it.

    Raises:
        InputError: Fewer than two blocks have two sentences.
        ConfigError: The batch cannot be divided among the processes.
    """

    def __init__(self, retriever: Retriever, corpus: Corpus, collator: Collator, settings: IctSettings) -> None:
        self.corpus, self.mask_rate, self.null_share = corpus, settings.mask_rate, settings.null_share
        sentences = np.diff(corpus.sentence_offsets)
        self.held_out = held_out(corpus, settings.cloze_recall, settings.seed)
        sentences[left_out(settings.questions, corpus)] = 0
        self.rows = np.flatnonzero(sentences >= (2 if self.mask_rate > 0 else 1))
        if len(self.rows) < 2:
            raise InputError(
                f"{corpus.artifact} has {len(self.rows)} blocks of two sentences or more; ICT needs at least 2."
            )
        count, order = len(self.rows), None
        if "single-sentences" in settings.official and self.mask_rate > 0:
            single = np.flatnonzero(sentences == 1)
            size = min(settings.batch_size, count)
            order = ThinnedDataOrder(count, len(single), 1 - self.mask_rate, size, settings.seed)
            self.rows = np.concatenate([self.rows, single])
        super().__init__(retriever, collator, settings, count=count, order=order, null=self.null_share > 0)

    def examples(self, step: int) -> list[Example]:
        """The random numbers of the others' pairs are drawn too, and nothing of their text is read."""
        rng = generator(self.settings.seed, Stream.ICT_SENTENCES, step)
        drawn = [(row, *self._draw(row, rng)) for row in self.rows[self.order.batch(step)].tolist()]
        return [self._example(*each) for each in drawn[self.own]]

    def _draw(self, row: int, rng: np.random.Generator) -> tuple[int, bool, bool]:
        """Return the number of the sentence, whether it is removed from the block, and whether the block is withheld."""
        first, stop = self.corpus.sentence_offsets[row : row + 2]
        held = self.held_out.get(row, set())
        free = [number for number in range(int(stop - first)) if number not in held] or range(int(stop - first))
        sentence = free[int(rng.integers(len(free)))]
        masked = bool(rng.random() < self.mask_rate) and stop - first > 1
        return sentence, masked, self.null_share > 0 and bool(rng.random() < self.null_share)

    def _example(self, row: int, k: int, masked: bool, withheld: bool) -> Example:
        body, starts = self.corpus.tokens(row), self.corpus.sentences(row)
        start, stop = int(starts[k]), int(starts[k + 1]) if k + 1 < len(starts) else len(body)
        rest = np.concatenate([body[:start], body[stop:]]) if masked else body
        names = (int(self.corpus.uid[row]),)
        return Example(body[start:stop], ((self.corpus.title(row), rest),), names, {"masked": masked}, withheld)


def train_ict(settings: IctSettings, out: Writer) -> dict[str, float]:
    """Train a retriever on the inverse cloze task, and write it. Returns metrics."""
    return train_retriever(settings, out, "ict-init", InverseClozeObjective)
