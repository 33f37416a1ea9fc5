"""The special tokens around the texts of an input. Every length of an input derives from them."""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Tokenizer as LibraryTokenizer

AROUND_ONE = 2
"""Most special tokens of an input of one text. Encoders with a masked-language-model head have as many: one before it and one behind it."""


@dataclass(frozen=True)
class Frame:
    """The special tokens of an input of one text, `before x after`, or of two, `before x between y after`.

    BERT and ModernBERT have `[CLS] x [SEP] y [SEP]`, RoBERTa, XLM-R, CamemBERT and MPNet `<s> x </s></s> y </s>`, Qwen3 `x <|endoftext|>`.

    Attributes:
        before, after: ids of the tokens before all and behind all: one each, or none. `AROUND_ONE` at most together.
        between: ids of the tokens between two texts; none where the tokenizer has no frame of two texts, and then no reader either.
        second_segment: segment of the second text and of the tokens behind it: 1 for BERT, 0 where the segments are not told apart.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    second_segment: int = 1

    @classmethod
    def bert(cls, cls_id: int, sep_id: int) -> Frame:
        """Return BERT's frame."""
        return cls((cls_id,), (sep_id,), (sep_id,))

    @property
    def around_one(self) -> int:
        """Number of special tokens of an input of one text."""
        return len(self.before) + len(self.after)

    @property
    def around_two(self) -> int:
        """Number of special tokens of an input of two texts."""
        return self.around_one + len(self.between)

    @property
    def ids(self) -> frozenset[int]:
        """The ids of all special tokens of the frame."""
        return frozenset((*self.before, *self.between, *self.after))


def frame_of(tokenizer: LibraryTokenizer) -> Frame | None:
    """Return the frame that a tokenizer puts around texts; None where it puts others than a `Frame` has around one.

    It has nothing between two texts where the tokenizer puts other tokens around them than around one.
    """
    whole, alone = tokenizer.encode("a", "a"), tokenizer.encode("a")
    own = [place for place, text in enumerate(alone.sequence_ids) if text == 0]
    if not own:
        return None
    text = alone.ids[own[0] : own[-1] + 1]
    before, after = (*alone.ids[: own[0]],), (*alone.ids[own[-1] + 1 :],)
    rest = len(whole.ids) - len(alone.ids) - len(text)
    between = (*whole.ids[len(before) + len(text) :][: max(0, rest)],)
    if whole.ids != [*before, *text, *between, *text, *after]:
        between = ()
    segment = whole.type_ids[-len(after) - 1] if between else 0
    return Frame(before, between, after, segment) if len(before) <= 1 >= len(after) else None
