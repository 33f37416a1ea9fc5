"""A query: wordpieces of which some are hidden.

Every objective that predicts hidden wordpieces makes its queries here, and the retriever searches with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from realmctl.errors import ConfigError

Tokens = NDArray[np.int64]

# Numbers that change results. They are not settings: if one changes, the versions of `mlm-init` and `condenser-init` must increase.
MASKED_SHARE, RANDOM_SHARE = 0.8, 0.1
"""Of the wordpieces hidden as BERT does, the shares replaced by [MASK] and by a random one (Devlin et al. 2019, section 3.1)."""


@dataclass(frozen=True, slots=True)
class HiddenText:
    """A text of which a part is hidden, for readers of text."""

    before: str
    hidden: str
    after: str = ""

    @classmethod
    def of(cls, text: str, start: int, end: int) -> HiddenText:
        """Return a text whose characters from `start` to `end` are hidden."""
        return cls(text[:start], text[start:end], text[end:])


@dataclass(frozen=True, slots=True)
class Query:
    """A sequence of wordpieces without special tokens, and which of them are hidden.

    tokens: int64 [L], with another wordpiece, as a rule [MASK], in each hidden place.
    places: int64 [M], the hidden places that are asked for.
    targets: int64 [M], the wordpieces that belong there. [MASK] itself where nobody knows them.
    sentence: row of the tagged sentence that it was made from; -1 for another source.
    beside: text that is read beside it, in which wordpieces may be hidden too; None where it is read alone.
    """

    tokens: Tokens
    places: Tokens
    targets: Tokens
    sentence: int = -1
    beside: Query | None = None

    @property
    def hidden(self) -> int:
        """Number of hidden wordpieces, those of the text beside it included."""
        return len(self.places) + (self.beside.hidden if self.beside else 0)

    def after(self, prefix: Sequence[int]) -> Query:
        """Return it behind a prefix, of which nothing is hidden."""
        tokens = np.concatenate([np.asarray(prefix, np.int64), self.tokens])
        return Query(tokens, self.places + len(prefix), self.targets, self.sentence, self.beside)

    def cut(self, room: int, room_beside: int) -> Query:
        """Return its first `room` wordpieces beside the first `room_beside` of its text. What is hidden behind them is not asked for."""
        inside = self.places < room
        beside = self.beside.cut(room_beside, 0) if self.beside else None
        return Query(self.tokens[:room], self.places[inside], self.targets[inside], self.sentence, beside)


def hide(tokens: NDArray[np.integer], places: Iterable[int], mask_id: int, beside: Query | None = None) -> Query:
    """Return the query in which [MASK] replaces the wordpieces at `places`. A place that is given twice is hidden once.

    Raises ConfigError for a negative `mask_id`: that of a tokenizer without a mask.
    """
    if mask_id < 0:
        raise ConfigError(
            "the tokenizer of these blocks has no mask, so nothing can be hidden in their texts. Use the blocks of a BERT's tokenizer, or "
            "pretrain --target continuation --reader-lm, which needs no mask."
        )
    masked: Tokens = np.array(tokens, dtype=np.int64)
    place_M: Tokens = np.fromiter(dict.fromkeys(places), dtype=np.int64)
    target_M = masked[place_M]
    masked[place_M] = mask_id
    return Query(masked, place_M, target_M, beside=beside)


def hide_as_bert(
    tokens: NDArray[np.integer], places: Tokens, mask_id: int, ordinary: Tokens, rng: np.random.Generator
) -> Query:
    """Hide the wordpieces at `places`: 80 % become [MASK], 10 % a random wordpiece, and 10 % stay.

    mask_id: id of [MASK]. ordinary: the ids that a random wordpiece is drawn from.
    """
    masked: Tokens = np.array(tokens, dtype=np.int64)
    targets, drawn = masked[places], rng.random(len(places))
    masked[places[drawn < MASKED_SHARE]] = mask_id
    other = places[(drawn >= MASKED_SHARE) & (drawn < MASKED_SHARE + RANDOM_SHARE)]
    masked[other] = ordinary[rng.integers(len(ordinary), size=len(other))]
    return Query(masked, places, targets)


def hide_answer(
    question: NDArray[np.integer], answer: Sequence[int] | NDArray[np.integer], mask_id: int, room: int
) -> Query:
    """Return a question followed by as many [MASK] as its answer has wordpieces. The question is cut to `room` less those.

    The answer may consist of [MASK]: a number of wordpieces that nobody knows.
    """
    whole = np.concatenate([question[: room - len(answer)], answer])
    return hide(whole, range(len(whole) - len(answer), len(whole)), mask_id)


def to_numbers(queries: Sequence[Query]) -> Tokens:
    """Return queries as int64 numbers, for exchange between processes.

    For each query: how many wordpieces and hidden places it has, its sentence, and whether it has a text beside it; its
    wordpieces, places and targets; and the numbers of that text.
    """
    parts: list[Tokens] = [np.empty(0, dtype=np.int64)]
    for query in queries:
        sizes = [len(query.tokens), len(query.places), query.sentence, query.beside is not None]
        parts += [np.array(sizes, dtype=np.int64), query.tokens, query.places, query.targets]
        parts += [to_numbers([query.beside])] if query.beside else []
    return np.concatenate(parts)


def from_numbers(numbers: Tokens) -> list[Query]:
    """Return the queries that `to_numbers` was given."""
    queries = []
    while len(numbers):
        query, numbers = _first_of(numbers)
        queries.append(query)
    return queries


def _first_of(numbers: Tokens) -> tuple[Query, Tokens]:
    """Return the first query and the numbers behind it."""
    length, hidden, sentence, followed = numbers[:4].tolist()
    tokens, places, targets, rest = np.split(numbers[4:], np.cumsum([length, hidden, hidden]))
    beside, rest = _first_of(rest) if followed else (None, rest)
    return Query(tokens, places, targets, sentence, beside), rest
