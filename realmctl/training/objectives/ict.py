"""Pairs out of single blocks: the inverse cloze task (ORQA, section 4; orqa/models/ict_model.py), and Contriever's independent cropping."""

from __future__ import annotations

import numpy as np

from realmctl.artifacts import Writer
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import InputError
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.retrieval.search.bm25 import Postings
from realmctl.tokens.token_search import occurrences
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import ThinnedDataOrder
from realmctl.training.evaluation.cloze_recall import held_out
from realmctl.training.objectives.in_batch import Example, InBatchContrast, train_retriever
from realmctl.training.settings.retriever import IctSettings

CROP_SHARES = (0.1, 0.5)
"""Least and largest share of a block in a crop (public code facebookresearch/contriever, ratio_min and ratio_max)."""
SHORTEST_CROP = 5
"""Fewest wordpieces of a crop. The value is this project's choice."""


class InverseClozeObjective(InBatchContrast):
    """Each block of two sentences or more gives a pair. The other blocks of the batch are the negatives.

    With the deviation `single-sentences` a block of one sentence gives a pair as often as a sentence stays in its block, and its sentence
    stays in it. The official code draws such blocks like all others, and leaves out those whose sentence is to be removed.

    `null_share` is not in ORQA: the null document is added to the blocks, and is the target for that share of the
    sentences. Without it, ICT leaves the null document's score so far below every block's that p(null|x) and its
    gradient are 0 in pre-training.

    With `hard_negatives` each sentence brings the blocks that BM25 over wordpieces ranks highest for it, as DPR's questions do (Karpukhin et
    al. 2020, section 3.2); here nobody labelled them. Its own block is left out, and blocks that contain the sentence.

    With `cloze_recall` the sentences that measure the training are no queries of it, but where a block has no other.

    Raises:
        InputError: Fewer than two blocks have two sentences, or there are no more blocks than hard negatives.
        ResourceError: BM25 is needed, and bm25s is not installed.
        ConfigError: The batch cannot be divided among the processes.
    """

    def __init__(self, retriever: Retriever, corpus: Corpus, collator: Collator, settings: IctSettings) -> None:
        self.corpus, self.mask_rate, self.null_share = corpus, settings.mask_rate, settings.null_share
        sentences = np.diff(corpus.sentence_offsets)
        self.held_out = held_out(corpus, settings.cloze_recall, settings.seed)
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
        self.blocks_each = 1 + settings.hard_negatives
        if len(corpus) < self.blocks_each:
            raise InputError(
                f"{corpus.artifact} has {len(corpus)} blocks, too few for --hard-negatives {settings.hard_negatives}."
            )
        if settings.hard_negatives:
            words = Tokenizer.load(corpus.artifact.path)
            self.postings, self.unknown = Postings.of(corpus, words.rows), words.unk
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
        hard = self._hard_negatives(body[start:stop], row)
        blocks = [(self.corpus.title(each), self.corpus.tokens(each)) for each in hard]
        names = tuple(self.corpus.uid[[row, *hard]].tolist())
        return Example(body[start:stop], ((self.corpus.title(row), rest), *blocks), names, {"masked": masked}, withheld)

    def _hard_negatives(self, sentence: TokenIds, own: int) -> list[int]:
        """The rows of the blocks that BM25 ranks highest. Where too many contain the sentence, the best of these fill up."""
        if self.blocks_each == 1:
            return []
        score_N = self.postings.score(sentence[sentence != self.unknown])
        best = [row for row in np.argsort(-score_N, kind="stable").tolist() if row != own]
        hard, holding = list[int](), list[int]()
        for row in best:
            (holding if len(occurrences(self.corpus.tokens(row), sentence)) else hard).append(row)
            if len(hard) == self.blocks_each - 1:
                break
        return [*hard, *holding][: self.blocks_each - 1]


class CroppingObjective(InBatchContrast):
    """Each block gives a pair of crops: two runs of its wordpieces, drawn independently, which may overlap.

    A crop has a tenth to a half of the wordpieces (Izacard et al. 2022, "Unsupervised Dense Information Retrieval with Contrastive
    Learning", section 3.1; public code facebookresearch/contriever, src/data.py). With `delete_rate` wordpieces are deleted at random.
    The title stays on the block's side.

    Raises:
        InputError: Fewer than two blocks have ten wordpieces.
        ConfigError: The batch cannot be divided among the processes.
    """

    def __init__(self, retriever: Retriever, corpus: Corpus, collator: Collator, settings: IctSettings) -> None:
        self.corpus, self.delete_rate = corpus, settings.delete_rate
        self.rows = np.flatnonzero(corpus.lengths >= 2 * SHORTEST_CROP)
        if len(self.rows) < 2:
            raise InputError(
                f"{corpus.artifact} has {len(self.rows)} blocks of {2 * SHORTEST_CROP} wordpieces or more; cropping needs at least 2."
            )
        super().__init__(retriever, collator, settings, count=len(self.rows))

    def examples(self, step: int) -> list[Example]:
        rng = generator(self.settings.seed, Stream.CROPS, step)
        seeds = rng.integers(2**32, size=self.order.batch_size)
        drawn = list(zip(self.rows[self.order.batch(step)].tolist(), seeds.tolist(), strict=True))[self.own]
        return [self._example(row, np.random.default_rng(seed)) for row, seed in drawn]

    def _example(self, row: int, rng: np.random.Generator) -> Example:
        body = self.corpus.tokens(row)
        query, block = (self.crop(body, rng) for _ in range(2))
        return Example(query, ((self.corpus.title(row), block),), (int(self.corpus.uid[row]),))

    def crop(self, body: TokenIds, rng: np.random.Generator) -> TokenIds:
        """Return a random run of the wordpieces, from which some are deleted. One at least is left."""
        length = max(SHORTEST_CROP, int(len(body) * rng.uniform(*CROP_SHARES)))
        start = int(rng.integers(len(body) - length + 1))
        kept = rng.random(length) >= self.delete_rate
        kept[int(rng.integers(length))] = True
        return body[start : start + length][kept]


def train_ict(settings: IctSettings, out: Writer) -> dict[str, float]:
    """Train a retriever on the inverse cloze task, or on crops, and write it. Returns metrics."""
    task = InverseClozeObjective if settings.pairs == "sentences" else CroppingObjective
    return train_retriever(settings, out, "ict-init", task)
