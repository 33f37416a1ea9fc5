"""How a tokenizer is learnt: its kind and its size."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

Kind = Literal["wordpiece", "bpe", "unigram"]


@dataclass(frozen=True)
class TokenizerRecipe:
    """How a tokenizer is learnt.

    Attributes:
        kind: wordpiece is BERT's, bpe is RoBERTa's (of bytes), and unigram is XLM-R's.
        size: the most tokens.
        lowercase: whether text is put into lower case.
        keep_marks: whether wordpiece keeps marks over and under letters, as every language but English needs: without them が is か, Hangul falls
            apart into its letters, and vowels of Hindi are lost. BERT drops them where it lower-cases. The other kinds keep them.
    """

    kind: Kind
    size: int
    lowercase: bool = True
    keep_marks: bool = False


def trained_kind(name: str) -> tuple[Kind, int] | None:
    """Return the kind and the size of train:N, train:bpe:N and train:unigram:N; None for another name. Sizes go from 100 to a million."""
    written = re.fullmatch(r"train:(?:(wordpiece|bpe|unigram):)?([1-9]\d{2,6})", name)
    if not written or int(written[2]) > 1_000_000:
        return None
    return cast(Kind, written[1] or "wordpiece"), int(written[2])
