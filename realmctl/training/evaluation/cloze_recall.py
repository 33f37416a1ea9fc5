"""Cloze recall: how often a sentence finds the passage that it was cut out of. It needs documents and no labels.

Some passages lose a sentence each, and the sentence must find its passage among the others, which are whole or lack a sentence of their
own; copies of it are left out. It is ICT's task (ORQA, section 4) as a measure: the sentences are drawn once with the run's seed, the passages are embedded with the
weights of the moment, and each is compared with each. The sentences are a sample. So are the passages, unless all are asked for; among those
that there are, ranks are exact. A passage with an equal score counts as before one's own.
Legend: N sentences, M passages, D projection.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import InputError
from realmctl.execution import processes
from realmctl.index.recall import wilson
from realmctl.models.evaluating import evaluating
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.models.weights import require_finite_scores
from realmctl.retrieval.embedding.embedding import embed_questions, embed_titles_and_bodies
from realmctl.retrieval.names import Bm25Tokens
from realmctl.retrieval.search.block_search import scale_of
from realmctl.retrieval.search.postings import Postings
from realmctl.retrieval.search.stems import Stems
from realmctl.tokens.token_search import occurrences
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training import data_parallel
from realmctl.training.data.draws import Stream, generator

SHORTEST = 5
"""Wordpieces of the shortest sentence that is cut out. Shorter ones, such as "See below.", say nothing."""
DEPTHS = (1, 5, 20)
SENTENCES_AT_ONCE = 64
FEWEST_TITLES = 50
"""With fewer titles to ask for, a corpus has no titles worth the name."""

REWORDED = 3
"""One title in so many counts as reworded: the third that shares the fewest words with its block. The other titles gain by training on the
blocks' words, whatever becomes of questions (docs/results/adapt/notes.md)."""

Ranks = NDArray[np.int64]
"""The rank of each sentence's own passage, int64 [N], from 1."""


@dataclass(frozen=True)
class ClozePassages:
    """M passages in wordpieces, and N sentences that were cut out of the first N of them. BM25 reads it as a corpus.

    Titles may ask in place of sentences (`titled`).
    """

    sentences: list[TokenIds]
    titles: list[TokenIds]
    bodies: list[TokenIds]

    @classmethod
    def drawn(cls, corpus: Corpus, sentences: int, passages: int, seed: int, longest: int = 0) -> ClozePassages:
        """Cut a sentence out of `sentences` blocks, fewer where the corpus has fewer, and take other blocks with them.

        Args:
            corpus: The blocks.
            sentences: How many sentences.
            passages: How many blocks in all; 0 for all of the corpus.
            seed: Seed of the draw.
            longest: Of a longer sentence only a random run of so many wordpieces looks for its block; 0 for whole sentences.

        Raises:
            InputError: Fewer than two blocks have a sentence that can be cut out.
        """
        rng = generator(seed, Stream.CLOZE_RECALL)
        order, numbers = _asked(corpus, sentences, rng)
        cut = {row: _bounds(corpus, row)[number] for row, number in numbers.items()}
        if len(cut) < 2:
            raise InputError(
                f"{corpus.artifact} has {len(cut)} blocks of two sentences of which one has {SHORTEST} wordpieces or more; cloze recall "
                "needs at least 2. Chunk longer documents."
            )
        known = {int(corpus.uid[row]) for row in cut}
        whole = islice(
            (row for row in order if int(corpus.uid[row]) not in known), max(0, (passages or len(corpus)) - len(cut))
        )
        bodies = {row: corpus.tokens(row) for row in (*cut, *whole)}
        asked = [bodies[row][start:stop] for row, (start, stop) in cut.items()]
        if longest:
            begins = [int(rng.integers(max(0, len(sentence) - longest) + 1)) for sentence in asked]
            asked = [sentence[begin : begin + longest] for sentence, begin in zip(asked, begins, strict=True)]
        return cls(
            asked,
            [corpus.title(row) for row in bodies],
            [np.delete(body, slice(*cut[row])) if row in cut else body for row, body in bodies.items()],
        )

    @classmethod
    def titled(cls, corpus: Corpus, titles: int, passages: int, seed: int) -> ClozePassages | None:
        """Take titles off their blocks, as queries of those blocks: a title may say in words of its own what a document is about.

        A title is asked for once, and only by a block whose text does not contain it. No two of the passages have the same title.

        Args:
            corpus: The blocks.
            titles: How many titles.
            passages: How many blocks in all; 0 for all of the corpus.
            seed: Seed of the draw.

        Returns:
            The passages, without titles; None where none are wanted, or fewer than `FEWEST_TITLES` can be asked for.
        """
        if not titles:
            return None
        rng = generator(seed, Stream.CLOZE_TITLES)
        asked, order = dict[bytes, int](), rng.permutation(len(corpus)).tolist()
        for row in order:
            if len(asked) == titles:
                break
            title = corpus.title(row)
            if len(title) and title.tobytes() not in asked and not len(occurrences(corpus.tokens(row), title)):
                asked[title.tobytes()] = row
        if len(asked) < min(FEWEST_TITLES, titles):
            return None
        rows, taken = [*asked.values()], {*asked}
        for row in order:
            if len(rows) >= (passages or len(corpus)):
                break
            named = corpus.title(row).tobytes()
            if not named or named not in taken:
                rows.append(row)
                taken.add(named)
        return cls(
            [corpus.title(row) for row in asked.values()],
            [corpus.title(row)[:0] for row in rows],
            [corpus.tokens(row) for row in rows],
        )

    @classmethod
    def asked(
        cls, corpus: Corpus, words: Tokenizer, questions: Mapping[int, str], passages: int, seed: int
    ) -> ClozePassages:
        """Questions that were written for blocks, {row: question}, look for these among other blocks, drawn at random.

        Of blocks with the same text one is asked of. passages: how many blocks in all; 0 for all of the corpus.
        """
        rows = [*{int(corpus.uid[row]): row for row in sorted(questions, reverse=True)}.values()][::-1]
        known = {int(corpus.uid[row]) for row in rows}
        order = generator(seed, Stream.HELD_OUT).permutation(len(corpus)).tolist()
        others = (row for row in order if int(corpus.uid[row]) not in known)
        every = [*rows, *islice(others, max(0, (passages or len(corpus)) - len(rows)))]
        return cls(
            [*words.tokens([questions[row] for row in rows])],
            [corpus.title(row) for row in every],
            [corpus.tokens(row) for row in every],
        )

    def in_other_words(self) -> NDArray[np.bool_]:
        """Which queries are reworded, bool [N]: the third that shares the fewest words, at least `FEWEST_TITLES`.

        A rare wordpiece weighs more, as in BM25.
        """
        wordpieces = [
            (np.unique(asked), np.unique(own)) for asked, own in zip(self.sentences, self.bodies, strict=False)
        ]
        holding = np.bincount(
            np.concatenate([own for _, own in wordpieces]),
            minlength=1 + max(int(asked[-1]) for asked, _ in wordpieces),
        )
        weight = np.log1p((len(wordpieces) - holding + 0.5) / (holding + 0.5))
        shared = [weight[np.intersect1d(*each)].sum() / weight[each[0]].sum() for each in wordpieces]
        found = np.zeros(len(wordpieces), bool)
        found[np.argsort(shared, kind="stable")[: max(FEWEST_TITLES, -(-len(found) // REWORDED))]] = True
        return found

    def __len__(self) -> int:
        return len(self.bodies)

    def title(self, row: int) -> TokenIds:
        return self.titles[row]

    def tokens(self, row: int) -> TokenIds:
        return self.bodies[row]

    def ranks(
        self,
        retriever: Retriever,
        collator: Collator,
        precision: str = "auto",
        on_progress: Callable[[int], None] = lambda passages: None,
    ) -> Ranks:
        """The ranks by a retriever. For the arguments see `scores`."""
        return ranks_of(self.scores(retriever, collator, precision, on_progress))

    def scores(
        self,
        retriever: Retriever,
        collator: Collator,
        precision: str = "auto",
        on_progress: Callable[[int], None] = lambda passages: None,
        whose: object = "the retriever",
    ) -> NDArray[np.float32]:
        """The scores by a retriever on its device, in which a passage has 1 with itself on average, float32 [N, M]. Each process embeds a part. The retriever's mode is restored.

        on_progress: called with the number of further passages that are embedded. whose: names the retriever in an error.

        Raises:
            NotFiniteError: A score is NaN or infinite. Its passage would have no rank.
        """
        own = slice(processes.rank(), None, processes.world_size())
        passage_MD = np.empty((len(self), retriever.projection), np.float32)
        with evaluating(retriever):
            ours = embed_titles_and_bodies(
                retriever, collator, self.titles[own], self.bodies[own], precision=precision, on_progress=on_progress
            )
            sentence_ND = embed_questions(
                retriever, collator, self.sentences, precision=precision, batch_size=SENTENCES_AT_ONCE
            )
        for rank, theirs in enumerate(data_parallel.gather_rows(ours)):
            passage_MD[rank :: processes.world_size()] = theirs
        with np.errstate(over="ignore", invalid="ignore"):
            score_NM: NDArray[np.float32] = sentence_ND @ passage_MD.T
            score_NM /= np.float32(scale_of(passage_MD.__getitem__, len(self)))
        require_finite_scores(torch.from_numpy(score_NM), whose)
        return score_NM

    def bm25_scores(
        self, words: Tokenizer, stemmer: str | None = None, compared: Bm25Tokens = "pieces"
    ) -> NDArray[np.float32]:
        """The scores by BM25 over wordpieces but [UNK], words or stems, float32 [N, M]."""
        stems = Stems(stemmer, words) if stemmer or compared == "words" else None
        postings = Postings.of_text(self, words, stems)
        asked = [sentence[sentence != words.unk] for sentence in self.sentences]
        return np.stack([postings.score(stems.known(each) if stems else each) for each in asked])


def _bounds(corpus: Corpus, row: int) -> list[tuple[int, int]]:
    """The first wordpiece of each sentence of a block, and the one after its last."""
    return list(pairwise([*corpus.sentences(row).tolist(), int(corpus.lengths[row])]))


def _asked(corpus: Corpus, sentences: int, rng: np.random.Generator) -> tuple[list[int], dict[int, int]]:
    """All blocks in a random order, and of the first so many that have two sentences or more the number of one that is long enough.

    Of copies of a block one is asked.
    """
    order, asked, known = rng.permutation(len(corpus)).tolist(), dict[int, int](), set[int]()
    for row in order:
        if len(asked) == sentences:
            break
        bounds = _bounds(corpus, row)
        long = [number for number, (start, stop) in enumerate(bounds) if stop - start >= SHORTEST]
        if len(bounds) > 1 and long and int(corpus.uid[row]) not in known:
            asked[row] = long[int(rng.integers(len(long)))]
            known.add(int(corpus.uid[row]))
    return order, asked


def held_out(corpus: Corpus, sentences: int, seed: int) -> dict[int, set[int]]:
    """The numbers of the sentences that a training leaves out, by block: those that measure it, and those that `eval-cloze` draws with the next
    seed, for a measurement that chose no weights.
    """
    found: dict[int, set[int]] = defaultdict(set)
    for each in (seed, seed + 1) if sentences else ():
        for row, number in _asked(corpus, sentences, generator(each, Stream.CLOZE_RECALL))[1].items():
            found[row].add(number)
    return dict(found)


def ranks_of(score_NM: NDArray[np.floating]) -> Ranks:
    """The rank of passage n for sentence n: how many passages score as high or higher, its own included."""
    own_N1 = np.diagonal(score_NM)[:, None]
    found: Ranks = (score_NM >= own_N1).sum(1)
    return found


def recall(rank_N: Ranks) -> dict[str, float]:
    """Return `cloze_recall@1`, `@5` and `@20` with their 95 % score intervals, and `cloze_rr`, the mean reciprocal rank."""
    found = {"cloze_rr": float((1 / rank_N).mean())}
    for depth in DEPTHS:
        share, name = float((rank_N <= depth).mean()), f"cloze_recall@{depth}"
        low, high = wilson(share, len(rank_N))
        found |= {name: share, f"{name}_low": low, f"{name}_high": high}
    return {name: round(value, 6) for name, value in found.items()}


class Gain(NamedTuple):
    """A mean difference of reciprocal ranks, with its 95 % interval over the sentences."""

    mean: float
    low: float
    high: float

    @property
    def shown(self) -> bool:
        """Whether the interval lies above 0."""
        return self.low > 0

    @property
    def lost(self) -> bool:
        """Whether the interval lies below 0: a loss is shown."""
        return self.high < 0


def gain(rank_N: Ranks, start_N: Ranks) -> Gain:
    """What ranks gain over others of the same sentences: the paired difference, and 1.96 standard errors of it to either side."""
    difference_N = 1 / rank_N - 1 / start_N
    mean, half = float(difference_N.mean()), 1.96 * float(difference_N.std(ddof=1)) / len(difference_N) ** 0.5
    return Gain(round(mean, 6), round(mean - half, 6), round(mean + half, 6))
