"""Reading practice with a curriculum: from pure copying to reading other blocks, with random blocks and null documents.

A reader that starts without a trained vocabulary head first learns to copy from a block that holds the very sentence.
Then it reads noisy copies and other blocks that tell what the sentence hides. Random blocks teach it to pass over what
does not help. Null documents teach it the input that retrieval utility is measured against.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from realmctl.nn.inputs import Collator
from realmctl.retrieval.corpus import Corpus
from realmctl.retrieval.tagged_queries import TaggedQueries
from realmctl.training.objectives.mlm import Examples, Masked, occurrences

Tokens = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Shares of the kinds of examples; they add up to 1."""

    copy: float
    noisy: float
    told: float
    random: float
    null: float

    def draw(self, rng: np.random.Generator) -> str:
        """One kind, by its share."""
        names = ("copy", "noisy", "told", "random", "null")
        shares = [getattr(self, name) for name in names]
        return str(rng.choice(names, p=shares))


# A prototype on real text chose these numbers: a six-layer encoder, 8 examples a step, windows of 64 wordpieces.
FIRST = Mixture(copy=0.75, noisy=0.10, told=0.0, random=0.10, null=0.05)
LATER = Mixture(copy=0.05, noisy=0.35, told=0.40, random=0.10, null=0.10)
FIRST_PART = 0.35
"""Share of the steps that take examples of `FIRST`."""
HIDDEN_WORDS = 0.2
"""Share of the other wordpieces that a copied sentence hides beside its spans."""
HIDDEN_OTHER_SPANS = 0.3
DROPPED_FROM_BLOCK, DROPPED_FROM_SENTENCE = 0.35, 0.25
"""Shares of the words that are left out of a noisy copy."""


class Curriculum(Examples):
    """Tagged sentences, each beside a window of text of the kind that the mixture draws.

    Args:
        queries: sentences with salient spans.
        corpus: the blocks that random and telling windows are taken from.
        partners: row of the block that restates a sentence, int64 [sentences], -1 for none (`pairing.partners`).
        continues_V: bool, True at wordpieces that continue a word.
        window: wordpieces of a window.
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
        self.lengths = queries.query_length, window + 2
        by_uid = {int(uid): row for row, uid in enumerate(corpus.uid)}
        self.own = np.array([by_uid.get(int(uid), -1) for uid in queries.uid], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.queries)

    def draw(self, number: int, rng: np.random.Generator, progress: float = 0.0) -> Masked:
        """Sentence `number` with a window; `progress` from 0 to 1 chooses the mixture."""
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
        """A random window of `body`, one that holds the places of `keep` where it can."""
        last = max(0, len(body) - self.window)
        low, high = 0, last
        if keep is not None:
            low, high = min(max(0, keep[1] - self.window), last), min(keep[0], last)
        start = int(rng.integers(low, max(low, high) + 1))
        return body[start : start + self.window]

    def _around(self, number: int, sentence: Tokens, rng: np.random.Generator) -> Tokens:
        """A window of the sentence's own block; where the corpus has no such block, the sentence within random text."""
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
        """A window of the partner around one span that it tells, and the spans that the window tells."""
        row = int(self.partners[number])
        if row < 0:
            return np.empty(0, dtype=np.int64), []
        body = self._body(row)
        places = [
            (int(at), int(at) + stop - first) for first, stop in spans for at in occurrences(body, sentence[first:stop])
        ]
        if not places:
            return body, []
        window = self._cut(body, places[int(rng.integers(len(places)))], rng)
        return window, [span for span in spans if len(occurrences(window, sentence[slice(*span)]))]

    def _asked(self, spans: list[tuple[int, int]], rng: np.random.Generator) -> list[tuple[int, int]]:
        """One of the spans, and each other with probability `HIDDEN_OTHER_SPANS`."""
        chosen = int(rng.integers(len(spans))) if spans else -1
        return [span for k, span in enumerate(spans) if k == chosen or rng.random() < HIDDEN_OTHER_SPANS]

    def _scattered(self, length: int, rng: np.random.Generator) -> list[tuple[int, int]]:
        return [(int(place), int(place) + 1) for place in np.flatnonzero(rng.random(length) < HIDDEN_WORDS)]

    def _dropped(
        self, tokens: Tokens, keep: list[tuple[int, int]], share: float, rng: np.random.Generator
    ) -> tuple[Tokens, list[tuple[int, int]]]:
        """The tokens without a share of their words, those of `keep` excepted, and where `keep` lies then."""
        word = np.cumsum(~self.continues_V[tokens]) if len(tokens) else np.empty(0, dtype=np.int64)
        gone = rng.random(int(word.max(initial=0)) + 1)[word] < share
        for first, stop in keep:
            gone[first:stop] = False
        place = np.concatenate([[0], np.cumsum(~gone)])
        return tokens[~gone], [(int(place[first]), int(place[stop])) for first, stop in keep]

    def _masked(
        self, sentence: Tokens, window: Tokens, spans: list[tuple[int, int]], more: list[tuple[int, int]] | None = None
    ) -> Masked:
        hidden: list[tuple[int, int, int]] = []
        masked = sentence.copy()
        for place in sorted({place for first, stop in [*spans, *(more or [])] for place in range(first, stop)}):
            hidden.append((0, place, int(sentence[place])))
            masked[place] = self.collator.mask_id
        return Masked(masked, window, hidden)
