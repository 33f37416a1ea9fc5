"""Reading practice: each tagged sentence beside a block that restates it, with salient spans hidden on either side.

It teaches a small reader to copy from the block, which masked blocks alone do not teach within the budget of a laptop. A
reader learns to copy only where the block repeats what the sentence hides. So each sentence has partners: the blocks, other
than its own, that share the largest sums of inverse document frequencies with it. `ReadingPractice` is steady. `Curriculum`
first shows copies of the sentence, which teaches a vocabulary head that was never trained, and then noisy copies, other
blocks that contain the hidden spans, random blocks, and null documents, the input that retrieval utility compares with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.index.protocol import best_rows
from realmctl.log import progress
from realmctl.models.inputs import Collator
from realmctl.retrieval.search.postings import Postings
from realmctl.spans.query import Query, hide
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.frame import AROUND_ONE
from realmctl.tokens.token_search import occurrences
from realmctl.tokens.tokenizer import Tokenizer

Tokens = NDArray[np.int64]

# The numbers here are this project's choice and change results. They are not settings: if one changes, the version of
# `mlm-init` must increase.
MOST_COMMON = 0.1
"""A wordpiece in more than this share of the blocks is skipped."""
LONGEST_POSTING = 20_000
"""A wordpiece in more than this number of blocks is skipped."""
HIDDEN_TOO = 0.3
"""Steady practice: probability that a further span that the block repeats is hidden."""
HIDDEN_COPY = 0.5
"""Steady practice: probability that a visible span's copies in the block are hidden."""
NOISY_BLOCK = 0.5
"""Steady practice: probability that a block has random wordpieces hidden."""
BLOCK_NOISE = 0.03
"""Steady practice: share of the wordpieces hidden in such a block."""
RANDOM_BLOCK = 0.15
"""Steady practice: probability that the block is a random one, from which nothing can be copied."""


def partners(queries: TaggedQueries, corpus: Corpus, count: int = 1) -> NDArray[np.int64]:
    """Rows of each sentence's partners, int64 [sentences, count], the best first.

    Places behind the last block that shares a wordpiece that is not skipped hold -1. Among equals the smaller row comes first.
    """
    postings = _rare_words(corpus)
    best = np.full((len(queries), count), -1, dtype=np.int64)
    with progress(len(queries), "pairing sentences with blocks", "sentences") as bar:
        for row in range(len(queries)):
            shared = postings.score(np.unique(queries.tokens(row)))
            shared[corpus.rows_of(queries.own_uid[row])] = 0.0
            rows = np.flatnonzero(shared)
            if len(rows):
                _, found = best_rows(shared[rows], min(count, len(rows)))
                best[row, : len(found)] = rows[found]
            bar.advance()
    return best


def _rare_words(corpus: Corpus) -> Postings:
    """The inverse document frequency of every wordpiece that few blocks hold, in each block that holds it."""
    held = [np.unique(np.concatenate([corpus.title(row), corpus.tokens(row)])) for row in range(len(corpus))]
    blocks = np.repeat(np.arange(len(corpus)), [len(tokens) for tokens in held])
    tokens = np.concatenate(held).astype(np.int64)
    count_V = np.bincount(tokens)
    is_rare = (count_V <= min(LONGEST_POSTING, max(2, int(MOST_COMMON * len(corpus)))))[tokens]
    blocks, tokens = blocks[is_rare], tokens[is_rare]
    order = np.argsort(tokens, kind="stable")
    idf_V = np.log((len(corpus) + 1) / (count_V + 0.5))
    starts = np.concatenate([[0], np.cumsum(np.bincount(tokens, minlength=len(count_V)))])
    return Postings({"data": idf_V[tokens[order]], "indices": blocks[order], "indptr": starts}, len(corpus))


class ReadingPractice:
    """Sentences, each together with the block that restates it.

    One span that the block repeats is hidden in the sentence, and each further one with probability 0.3. Of the spans that
    stay visible, half have their copies in the block hidden. For 15 % of the sentences the block is a random one, from which
    nothing can be copied.
    """

    def __init__(
        self,
        queries: TaggedQueries,
        corpus: Corpus,
        partners: NDArray[np.int64],
        collator: Collator,
        *,
        lengths: tuple[int, int],
    ) -> None:
        self.queries, self.corpus, self.partners = queries, corpus, partners
        self.collator, self.lengths = collator, lengths
        self.rows = np.flatnonzero(partners >= 0)
        if not len(self.rows):
            raise InputError(
                f"No block of {corpus.artifact} restates a sentence of {queries.artifact}: none shares a rare wordpiece with one, so there "
                "is nothing to practise. Use a corpus that repeats its facts, --practice curriculum, which also copies the sentence "
                "itself, or leave --spans out."
            )

    def __len__(self) -> int:
        return len(self.rows)

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Query:
        row = int(self.rows[number])
        block = int(rng.integers(len(self.corpus))) if rng.random() < RANDOM_BLOCK else int(self.partners[row])
        sentence, body = self.queries.tokens(row), self.corpus.tokens(block)
        spans = self.queries.spans_of(row).tolist()
        told = [k for k, (first, stop) in enumerate(spans) if len(occurrences(body, sentence[first:stop]))]
        told = told or list(range(len(spans)))
        chosen = int(rng.choice(told))
        asked = [k for k in told if k == chosen or rng.random() < HIDDEN_TOO]
        shown = [k for k in range(len(spans)) if k not in asked and rng.random() < HIDDEN_COPY]
        copies = [
            at + place
            for copy in (sentence[slice(*spans[k])] for k in shown)
            for at in occurrences(body, copy)
            for place in range(len(copy))
        ]
        noise = np.flatnonzero(rng.random(len(body)) < BLOCK_NOISE).tolist() if rng.random() < NOISY_BLOCK else []
        mask_id, places = self.collator.mask_id, [place for k in asked for place in range(*spans[k])]
        query = hide(sentence, places, mask_id, beside=hide(body, [*copies, *noise], mask_id))
        return query.cut(self.lengths[0] - AROUND_ONE, self.lengths[1] - AROUND_ONE)


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Shares of the kinds of examples. The shares add up to 1.

    copy: the sentence beside a block that contains it.
    noisy: a copy in which some words of the sentence and of the block are left out.
    told: the sentence beside another block that contains one of its spans.
    random: the sentence beside a random block.
    null: the sentence beside the null document.
    """

    copy: float
    noisy: float
    told: float
    random: float
    null: float

    def draw(self, rng: np.random.Generator) -> str:
        """Draw a kind with the probability of its share."""
        names = ("copy", "noisy", "told", "random", "null")
        shares = [getattr(self, name) for name in names]
        return str(rng.choice(names, p=shares))


# These numbers worked in a prototype on real text: an encoder of six layers, 8 examples per step, windows of 64 wordpieces.
FIRST = Mixture(copy=0.75, noisy=0.10, told=0.0, random=0.10, null=0.05)
LATER = Mixture(copy=0.05, noisy=0.35, told=0.40, random=0.10, null=0.10)
FIRST_PART = 0.35
"""Share of the steps whose examples are drawn from `FIRST`. The other steps use `LATER`."""
HIDDEN_WORDS = 0.2
"""In a copy: probability of hiding a wordpiece outside the salient spans."""
HIDDEN_OTHER_SPANS = 0.3
"""Probability of hiding a further span. One span is always hidden."""
PARTNERS = 20
"""Partners of a sentence, among which a block that holds one of its spans is drawn."""
BETWEEN: Tokens = np.array([-1])
"""Stands between two blocks where both are searched at once: no wordpiece."""
DROPPED_FROM_BLOCK, DROPPED_FROM_SENTENCE = 0.35, 0.25
"""In a noisy copy: shares of the words that are left out of the block and of the sentence."""


class Curriculum:
    """Tagged sentences, each beside a window of text. The mixture draws the kind of the window.

    Args:
        queries: sentences with salient spans.
        corpus: the blocks that windows are taken from.
        partners: rows of the blocks that restate a sentence, int64 [sentences, P], -1 for none (`partners`).
        continues_V: bool, True at wordpieces that continue a word.
        window: width of a window in wordpieces.
    """

    def __init__(
        self,
        queries: TaggedQueries,
        corpus: Corpus,
        partners: NDArray[np.int64],
        collator: Collator,
        *,
        continues_V: NDArray[np.bool_],
        window: int,
    ) -> None:
        self.queries, self.corpus, self.partners = queries, corpus, partners
        self.collator, self.continues_V, self.window = collator, continues_V, window
        self.lengths = queries.query_length, window + AROUND_ONE
        by_uid = {int(uid): row for row, uid in enumerate(corpus.uid)}
        self.own = np.array([by_uid.get(int(uid), -1) for uid in queries.own_uid], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.queries)

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Query:
        """Return sentence `number` with a window. `progress`, from 0 to 1, is the share of the steps that are done."""
        kind = (FIRST if progress < FIRST_PART else LATER).draw(rng)
        sentence: Tokens = np.array(self.queries.tokens(number), dtype=np.int64)
        spans = [(int(first), int(stop)) for first, stop in self.queries.spans_of(number)]
        if kind == "told":
            window, told = self._telling(number, sentence, spans, rng)
            if told:
                return self._masked(sentence, window, self._asked(told, rng))
            kind = "noisy"
        if kind in ("copy", "noisy"):
            window = self._around(number, sentence, rng)
            if kind == "copy":
                return self._masked(sentence, window, spans, self._scattered(len(sentence), rng))
            sentence, spans = self._dropped(sentence, spans, DROPPED_FROM_SENTENCE, rng)
            kept = [place for first, stop in spans for place in occurrences(window, sentence[first:stop])]
            lengths = [stop - first for first, stop in spans for _ in occurrences(window, sentence[first:stop])]
            window, _ = self._dropped(
                window, [(int(p), int(p) + n) for p, n in zip(kept, lengths, strict=True)], DROPPED_FROM_BLOCK, rng
            )
            return self._masked(sentence, window, self._asked(spans, rng))
        empty: Tokens = np.empty(0, dtype=np.int64)
        window = empty if kind == "null" else self._cut(self._body(int(rng.integers(len(self.corpus)))), None, rng)
        return self._masked(sentence, window, self._asked(spans, rng))

    def _body(self, row: int) -> Tokens:
        return np.array(self.corpus.tokens(row), dtype=np.int64)

    def _cut(self, body: Tokens, keep: tuple[int, int] | None, rng: np.random.Generator) -> Tokens:
        """Return a random window of `body`. It contains the positions of `keep`, if they fit into a window."""
        last = max(0, len(body) - self.window)
        low, high = 0, last
        if keep is not None:
            low, high = min(max(0, keep[1] - self.window), last), min(keep[0], last)
        start = int(rng.integers(low, max(low, high) + 1))
        return body[start : start + self.window]

    def _around(self, number: int, sentence: Tokens, rng: np.random.Generator) -> Tokens:
        """Return a window of the sentence's own block. If the corpus lacks this block, insert the sentence into a random block."""
        row = int(self.own[number])
        if row >= 0:
            body = self._body(row)
            found = occurrences(body, sentence)
            if len(found):
                return self._cut(body, (int(found[0]), int(found[0]) + len(sentence)), rng)
        around = self._body(int(rng.integers(len(self.corpus))))
        place = int(rng.integers(len(around) + 1))
        body = np.concatenate([around[:place], sentence, around[place:]])
        return self._cut(body, (place, place + len(sentence)), rng)

    def _telling(
        self, number: int, sentence: Tokens, spans: list[tuple[int, int]], rng: np.random.Generator
    ) -> tuple[Tokens, list[tuple[int, int]]]:
        """Return a window of a partner around a span that both contain, and all spans that the window contains.

        The span is drawn first, and then one of the places where a partner contains it.
        """
        bodies = [self.corpus.tokens(int(row)) for row in self.partners[number] if row >= 0]
        joined = np.concatenate([part for body in bodies for part in (body, BETWEEN)]) if bodies else BETWEEN
        told = []
        for first, stop in spans:
            places = occurrences(joined, sentence[first:stop])
            if len(places):
                told.append((stop - first, places))
        if not told:
            return np.empty(0, dtype=np.int64), []
        length, places = told[int(rng.integers(len(told)))]
        place = int(places[int(rng.integers(len(places)))])
        starts = np.cumsum([0, *(len(body) + 1 for body in bodies)])
        which = int(np.searchsorted(starts, place, "right")) - 1
        at = place - int(starts[which])
        window = self._cut(np.array(bodies[which], dtype=np.int64), (at, at + length), rng)
        return window, [span for span in spans if len(occurrences(window, sentence[slice(*span)]))]

    def _asked(self, spans: list[tuple[int, int]], rng: np.random.Generator) -> list[tuple[int, int]]:
        """Draw the spans to hide: one of them always, each other one with probability `HIDDEN_OTHER_SPANS`."""
        chosen = int(rng.integers(len(spans))) if spans else -1
        return [span for k, span in enumerate(spans) if k == chosen or rng.random() < HIDDEN_OTHER_SPANS]

    def _scattered(self, length: int, rng: np.random.Generator) -> list[tuple[int, int]]:
        return [(int(place), int(place) + 1) for place in np.flatnonzero(rng.random(length) < HIDDEN_WORDS)]

    def _dropped(
        self, tokens: Tokens, keep: list[tuple[int, int]], share: float, rng: np.random.Generator
    ) -> tuple[Tokens, list[tuple[int, int]]]:
        """Leave out a share of the words outside `keep`. Return the other tokens, and the new positions of `keep`."""
        word = np.cumsum(~self.continues_V[tokens]) if len(tokens) else np.empty(0, dtype=np.int64)
        gone = rng.random(int(word.max(initial=0)) + 1)[word] < share
        for first, stop in keep:
            gone[first:stop] = False
        place = np.concatenate([[0], np.cumsum(~gone)])
        return tokens[~gone], [(int(place[first]), int(place[stop])) for first, stop in keep]

    def _masked(
        self, sentence: Tokens, window: Tokens, spans: list[tuple[int, int]], more: list[tuple[int, int]] | None = None
    ) -> Query:
        places = sorted({place for first, stop in [*spans, *(more or [])] for place in range(first, stop)})
        query = hide(sentence, places, self.collator.mask_id, beside=hide(window, (), self.collator.mask_id))
        return query.cut(self.lengths[0] - AROUND_ONE, self.lengths[1] - AROUND_ONE)


def practice_of(spans: Artifact, corpus: Corpus, words: Tokenizer, window: int | None) -> ReadingPractice | Curriculum:
    """Return the practice of tagged sentences: the curriculum with a window of the blocks, and steady practice without. Raises: see `ReadingPractice`."""
    queries, collator = TaggedQueries(spans, corpus), Collator.of(words)
    if window is not None:
        found = partners(queries, corpus, PARTNERS)
        return Curriculum(queries, corpus, found, collator, continues_V=words.continues, window=window)
    lengths = queries.query_length, corpus.max_wordpieces
    return ReadingPractice(queries, corpus, partners(queries, corpus)[:, 0], collator, lengths=lengths)
