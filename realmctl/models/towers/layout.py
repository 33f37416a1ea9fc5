"""How a retriever reads queries and blocks: forms of a block, and prefixes.

An encoder gives good vectors only for inputs of the form that it was trained on. Retrievers made here read
`[CLS] title [SEP] body [SEP]` in two segments, as REALM does. Imported ones may read another form (`BlockForm`), and
expect words before a query or before a block, such as `query: `.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from realmctl.tokens.frame import Frame

if TYPE_CHECKING:
    from realmctl.models.inputs import Collator, TokenBatch, TokenSequence

BlockForm = Literal["pair", "separated", "joined"]
"""pair: `[CLS] title [SEP] body [SEP]` in segments 0 and 1. separated: the same in segment 0 (DPR).
joined: `[CLS] title body [SEP]` in segment 0 (sentence-transformers)."""
MAX_PREFIX = 128
"""Most wordpieces of a prefix."""


@dataclass(frozen=True)
class Prefix:
    """Text before every query or block, and its wordpiece ids, without those of the blanks that it ends in."""

    text: str = ""
    ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.ids) > MAX_PREFIX:
            raise ValueError(f"a prefix has more than {MAX_PREFIX} wordpieces")

    def before(self, collator: Collator, tokens: TokenSequence) -> TokenSequence:
        """Return the tokens of the prefix and of a text behind it, as those of both written as one text."""
        return collator.behind(self.text, self.ids, tokens) if self.ids else tokens


@dataclass(frozen=True)
class InputLayout:
    """The form of the inputs. The default is REALM's. pools_prefixes: whether pooling reads the tokens of a prefix, and those before it."""

    blocks: BlockForm = "pair"
    query_prefix: Prefix = Prefix()
    block_prefix: Prefix = Prefix()
    pools_prefixes: bool = True

    def extra_tokens(self, frame: Frame) -> int:
        """Return the number of tokens of a block besides its title and its body."""
        return (frame.around_one if self.blocks == "joined" else frame.around_two) + len(self.block_prefix.ids)

    def query(self, collator: Collator, token_lists: Sequence[TokenSequence], length: int) -> TokenBatch:
        """Return `[CLS] prefix x [SEP]`, at most `length` tokens."""
        texts = [collator.at_start(self.query_prefix.before(collator, tokens)) for tokens in token_lists]
        return self._pooled(collator.query(texts, length), self.query_prefix, collator)

    def block(
        self, collator: Collator, titles: Sequence[TokenSequence], bodies: Sequence[TokenSequence], length: int
    ) -> TokenBatch:
        """Return titles and bodies in the form `blocks`, at most `length` tokens. The null document is empty."""
        before = functools.partial(self.block_prefix.before, collator)
        if self.blocks == "joined":
            texts = [collator.at_start(before(np.concatenate(pair))) for pair in zip(titles, bodies, strict=True)]
            return self._pooled(collator.query(texts, length), self.block_prefix, collator)
        titles = [before(title) for title in titles]
        packed = collator.block([*map(collator.at_start, titles)], [*map(collator.at_start, bodies)], length)
        packed = self._pooled(packed, self.block_prefix, collator)
        if self.blocks == "pair":
            return packed
        return dataclasses.replace(packed, segments_BL=0 * packed.segments_BL)

    def _pooled(self, packed: TokenBatch, prefix: Prefix, collator: Collator) -> TokenBatch:
        left_out = 0 if self.pools_prefixes or not prefix.ids else len(collator.frame.before) + len(prefix.ids)
        return dataclasses.replace(packed, unpooled=left_out)
