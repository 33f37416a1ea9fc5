"""Whole-word masking: a word is masked with all of its wordpieces or not at all.

Of the chosen wordpieces 80 % become [MASK], 10 % a random wordpiece, 10 % stay (BERT's rates). Condenser masks this way
(public code luyug/Condenser, data.py). Tokens are cut before masks are drawn, so targets stay aligned on long inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from realmctl.nn.inputs import Collator
from realmctl.retrieval.corpus import Corpus, TokenIds
from realmctl.training.objectives.mlm import Examples, Masked

MASK_SHARE, RANDOM_SHARE = 0.8, 0.1  # BERT (Devlin et al. 2019), section 3.1
FIRST_ORDINARY = 5
"""Ids below this number are [PAD], [UNK], [CLS], [SEP] and [MASK] in a vocabulary that was trained here."""


@dataclass(frozen=True, kw_only=True)
class WholeWordMasking:
    """Draws masks over whole words.

    `continues_V`: bool, True at wordpieces that continue a word ("##..."). `rate`: share of the wordpieces to mask.
    """

    continues_V: NDArray[np.bool_]
    mask_id: int
    rate: float = 0.15

    def masked(self, tokens: TokenIds, rng: np.random.Generator) -> Masked:
        """Return the tokens with masks, and what was masked; at least one word of a non-empty input is."""
        masked: NDArray[np.int64] = np.array(tokens, dtype=np.int64)
        chosen = np.array(sorted(self._chosen(masked, rng)), dtype=np.int64)
        hidden = [(0, int(place), int(masked[place])) for place in chosen]
        draw = rng.random(len(chosen))
        masked[chosen[draw < MASK_SHARE]] = self.mask_id
        random = chosen[(draw >= MASK_SHARE) & (draw < MASK_SHARE + RANDOM_SHARE)]
        masked[random] = rng.integers(FIRST_ORDINARY, len(self.continues_V), len(random))
        return Masked(masked, None, hidden)

    def _chosen(self, tokens: NDArray[np.int64], rng: np.random.Generator) -> list[int]:
        starts = np.flatnonzero(~self.continues_V[tokens])
        if len(tokens) and (not len(starts) or starts[0] != 0):
            starts = np.insert(starts, 0, 0)
        words = np.split(np.arange(len(tokens)), starts[1:])
        budget = max(1, round(len(tokens) * self.rate))
        chosen: list[int] = []
        for number in rng.permutation(len(words)):
            word = words[number]
            if len(chosen) >= budget:
                break
            if len(chosen) + len(word) <= budget or not chosen:
                chosen.extend(word.tolist())
        return chosen


class MaskedPassages(Examples):
    """Windows of blocks, at most `length` tokens with [CLS] and [SEP]."""

    def __init__(self, corpus: Corpus, collator: Collator, masking: WholeWordMasking, *, length: int) -> None:
        self.corpus, self.collator, self.masking, self.lengths = corpus, collator, masking, (length, 0)

    def __len__(self) -> int:
        return len(self.corpus)

    def draw_all(self, number: int, rng: np.random.Generator) -> list[Masked]:
        """One masked window of block `number`."""
        return [self.window(number, rng)]

    def window(self, row: int, rng: np.random.Generator) -> Masked:
        """A random window of a block, masked."""
        body, room = self.corpus.tokens(row), self.lengths[0] - 2
        start = int(rng.integers(max(1, len(body) - room + 1)))
        return self.masking.masked(body[start : start + room], rng)


class SpanPairs(MaskedPassages):
    """Documents of two blocks or more; each gives windows of two different blocks.

    `documents`: rows of the blocks of each document.
    """

    def __init__(
        self,
        corpus: Corpus,
        collator: Collator,
        masking: WholeWordMasking,
        documents: Sequence[NDArray[np.int64]],
        *,
        length: int,
    ) -> None:
        super().__init__(corpus, collator, masking, length=length)
        self.documents = [rows for rows in documents if len(rows) > 1]

    def __len__(self) -> int:
        return len(self.documents)

    def draw_all(self, number: int, rng: np.random.Generator) -> list[Masked]:
        """Masked windows of two blocks of document `number`."""
        rows = rng.choice(self.documents[number], 2, replace=False)
        return [self.window(int(row), rng) for row in rows]


def rows_by_document(corpus: Corpus) -> list[NDArray[np.int64]]:
    """Rows of the blocks of each document, in the order of the corpus."""
    found: dict[str, list[int]] = {}
    for row in range(len(corpus)):
        found.setdefault(str(corpus.records[row]["document"]), []).append(row)
    return [np.array(rows, dtype=np.int64) for rows in found.values()]
