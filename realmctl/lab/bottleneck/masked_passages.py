"""Windows of blocks with masks over whole words, one or two of a document.

Of the hidden wordpieces, 80 % become [MASK], 10 % a random one, and 10 % stay. Long blocks are cut before masks are drawn, so
masks and targets stay aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.spans.query import Query, hide_as_bert
from realmctl.tokens.frame import AROUND_ONE
from realmctl.tokens.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class WholeWordMasking:
    """Draws masks over whole words: all wordpieces of a word or none (public code luyug/Condenser, data.py).

    continues_V: bool, True at wordpieces that continue a word ("##...").
    ordinary: ids that stand for text, of which random wordpieces are drawn (`Tokenizer.ordinary`).
    rate: share of the wordpieces to mask.
    spared: the wordpiece that is never masked, [UNK]; None if there is none.
    """

    continues_V: NDArray[np.bool_]
    mask_id: int
    ordinary: NDArray[np.int64]
    rate: float = 0.15
    spared: int | None = None

    @classmethod
    def of(cls, words: Tokenizer, rate: float) -> WholeWordMasking:
        """Return the masking of a corpus with this tokenizer."""
        return cls(
            continues_V=words.continues, mask_id=words.mask, ordinary=words.ordinary, rate=rate, spared=words.unk
        )

    def masked(self, tokens: TokenIds, rng: np.random.Generator) -> Query:
        """Return the masked tokens and the targets. Nothing is masked where every word is longer than the budget."""
        chosen = np.flatnonzero(self.chosen(tokens, 1, rng)[0])
        return hide_as_bert(tokens, chosen, self.mask_id, self.ordinary, rng)

    def chosen(self, tokens: TokenIds, sets: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Return `sets` independent draws of what to mask, bool [sets, tokens].

        The words are taken in random order. One that does not fit into the budget is left out.
        """
        begins = ~self.continues_V[tokens]
        begins[:1] = True
        word_L = np.cumsum(begins) - 1
        size_W = np.bincount(word_L)
        may_W = np.ones(len(size_W), np.bool_)
        may_W[word_L[tokens == self.spared]] = False
        order_SW = rng.permuted(np.tile(np.arange(len(size_W)), (sets, 1)), axis=1)
        budget, taken_S, row_S = max(1, round(len(tokens) * self.rate)), np.zeros(sets, np.int64), np.arange(sets)
        chosen_SW = np.zeros((sets, len(size_W)), np.bool_)
        for word_S in order_SW.T:
            fits_S = may_W[word_S] & (taken_S + size_W[word_S] <= budget)
            chosen_SW[row_S, word_S] = fits_S
            taken_S += size_W[word_S] * fits_S
            if taken_S.min() >= budget:
                break
        return chosen_SW[:, word_L]


class MaskedPassages:
    """Masked windows of blocks. A window has at most `length` tokens, [CLS], [SEP] and the prefix before it included."""

    def __init__(
        self,
        corpus: Corpus,
        collator: Collator,
        masking: WholeWordMasking,
        *,
        length: int,
        prefix: tuple[int, ...] = (),
    ) -> None:
        self.corpus, self.collator, self.masking, self.length, self.prefix = corpus, collator, masking, length, prefix

    def __len__(self) -> int:
        return len(self.corpus)

    def draw_all(self, number: int, rng: np.random.Generator) -> list[Query]:
        """Return one masked window of block `number`."""
        return [self.window(number, rng)]

    def batch(self, windows: Sequence[Query]) -> QueryBatch:
        """Return masked windows in rows."""
        return self.collator.queries(windows, self.length)

    def window(self, row: int, rng: np.random.Generator) -> Query:
        """Return a random window of a block, masked."""
        body, room = self.corpus.tokens(row), max(1, self.length - AROUND_ONE - len(self.prefix))
        start = int(rng.integers(max(1, len(body) - room + 1)))
        return self.masking.masked(body[start : start + room], rng).after(self.prefix)


class SpanPairs(MaskedPassages):
    """Pairs of masked windows. Both windows are from one document, and from different blocks of it.

    documents: rows of the blocks of each document. Documents with a single block are left out. names: int64, a number for each document;
    copies have the same.
    """

    def __init__(
        self,
        corpus: Corpus,
        collator: Collator,
        masking: WholeWordMasking,
        documents: Sequence[NDArray[np.int64]],
        *,
        length: int,
        prefix: tuple[int, ...] = (),
    ) -> None:
        super().__init__(corpus, collator, masking, length=length, prefix=prefix)
        self.documents = [rows for rows in documents if len(rows) > 1]
        first = dict[bytes, int]()
        named = (corpus.uid[rows].tobytes() for rows in self.documents)
        self.names = np.array([first.setdefault(name, number) for number, name in enumerate(named)], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.documents)

    def draw_all(self, number: int, rng: np.random.Generator) -> list[Query]:
        """Return masked windows of two random blocks of document `number`."""
        rows = rng.choice(self.documents[number], 2, replace=False)
        return [self.window(int(row), rng) for row in rows]
