"""The masking `past-tense` of `pretrain --masking`: what happened is hidden, not who did it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.corpus import TokenIds
from realmctl.spans.masking import Masking


class PastTense(Masking):
    """It hides every word in -ed of a tagged sentence, and the salient span of a sentence without one."""

    draws = False

    def places(
        self, sentence: TokenIds, span: tuple[int, int], most: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        words, place = list[tuple[int, int]](), 0
        for number, goes_on in enumerate([*self.words.continues[sentence][1:].tolist(), False], 1):
            if not goes_on:
                words.append((place, number))
                place = number
        verbs = [range(*word) for word in words if self.words.text_of(sentence[slice(*word)]).strip().endswith("ed")]
        if verbs:
            return np.array([place for word in verbs for place in word])
        return np.arange(span[0], min(span[1], len(sentence)))
