"""The seam between tagged sentences and what pre-training hides of them. REALM's is `Salient` (section 3.4); the others are its baselines (table 2).

Another masking is a class in a package of its own, by its entry point or room (`realmctl.maskings`), and `pretrain --masking NAME`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import TokenIds
from realmctl.errors import ConfigError
from realmctl.registry import name_of
from realmctl.spans.settings import MASKINGS
from realmctl.tokens.tokenizer import Tokenizer

UNIFORM_RATE = 0.15
"""Share of the wordpieces that `random-uniform` hides: BERT's rate (Devlin et al. 2019, section 3.1). A change raises the
version of `pretrain`."""


class Masking(ABC):
    """Which wordpieces of a tagged sentence are hidden.

    words: The tokenizer, for a masking that looks at words.
    """

    draws: ClassVar[bool] = True
    """Whether it draws random numbers. If it does not, each process hides the spans of its own share alone."""

    def __init__(self, words: Tokenizer) -> None:
        self.words = words

    @abstractmethod
    def places(
        self, sentence: TokenIds, span: tuple[int, int], most: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return the places to hide, rising, int64 [M] with M of at least 1.

        Args:
            sentence: The wordpieces of the sentence, cut to the length of a query, without special ones.
            span: The first wordpiece of the salient span, and the one after its last, which may lie beyond the end.
            most: How many of them are asked for: the first ones. More than these may be hidden.
            rng: What it draws from.
        """

    def hidden(
        self, sentence: TokenIds, span: tuple[int, int], most: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return `places`. Raises ConfigError where they are not as it has to return them."""
        found = np.asarray(self.places(sentence, span, most, rng))
        is_whole = found.ndim == 1 and found.size and np.issubdtype(found.dtype, np.integer)
        if not (is_whole and found[0] >= 0 and found[-1] < len(sentence) and (np.diff(found) > 0).all()):
            torn = f"`places` of {name_of(type(self))} returns {found.tolist()} for {len(sentence)} wordpieces"
            raise ConfigError(
                f"{torn}, and a masking returns rising places below that number, one or more. Correct it there."
            )
        return found


class Salient(Masking):
    """The salient span (section 3.4)."""

    draws = False

    def places(
        self, sentence: TokenIds, span: tuple[int, int], most: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        return np.arange(span[0], min(span[1], len(sentence)))


class RandomSpan(Masking):
    """As many wordpieces side by side as the salient span has, anywhere."""

    def places(
        self, sentence: TokenIds, span: tuple[int, int], most: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        width = span[1] - span[0]
        first = int(rng.integers(max(1, len(sentence) - width + 1)))
        return np.arange(first, min(first + width, len(sentence)))


class RandomUniform(Masking):
    """15 % of all wordpieces, as BERT."""

    def places(
        self, sentence: TokenIds, span: tuple[int, int], most: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        count = min(most, len(sentence), max(1, round(UNIFORM_RATE * len(sentence))))
        return np.sort(rng.choice(len(sentence), count, replace=False))


def masking_of(name: str, words: Tokenizer) -> Masking:
    """Return the masking with this name. Raises ConfigError and ResourceError as `Registry.load`."""
    return MASKINGS.load(name, Masking)(words)
