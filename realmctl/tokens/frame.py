"""The special tokens around the texts of an input. Every length of an input derives from them."""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Tokenizer as LibraryTokenizer

AROUND_ONE = 2
"""Special tokens of an input of one text: one before it and one behind it."""


@dataclass(frozen=True)
class Frame:
    """The special tokens of an input of one text, `before x after`, or of two, `before x between y after`.

    BERT and ModernBERT have `[CLS] x [SEP] y [SEP]`, RoBERTa, XLM-R, CamemBERT and MPNet `<s> x </s></s> y </s>`.

    Attributes:
        before, after: ids of the token before all and of the one behind all. The state of the first stands for the input.
        between: ids of the tokens between two texts, at least one.
        second_segment: segment of the second text and of the tokens behind it: 1 for BERT, 0 where the segments are not told apart.
    """

    before: int
    between: tuple[int, ...]
    after: int
    second_segment: int = 1

    @classmethod
    def bert(cls, cls_id: int, sep_id: int) -> Frame:
        """Return BERT's frame."""
        return cls(cls_id, (sep_id,), sep_id)

    @property
    def around_two(self) -> int:
        """Number of special tokens of an input of two texts."""
        return AROUND_ONE + len(self.between)

    @property
    def ids(self) -> frozenset[int]:
        """The ids of all special tokens of the frame."""
        return frozenset((self.before, *self.between, self.after))


def frame_of(tokenizer: LibraryTokenizer) -> Frame | None:
    """Return the frame that a tokenizer puts around two texts; None where it puts others than a `Frame` has."""
    whole, alone = tokenizer.encode("a", "a"), tokenizer.encode("a")
    at_first = [place for place, text in enumerate(whole.sequence_ids) if text == 0]
    at_second = [place for place, text in enumerate(whole.sequence_ids) if text == 1]
    if not at_first or not at_second or at_first[-1] > at_second[0]:
        return None
    text = [whole.ids[place] for place in at_first]
    before, between = whole.ids[: at_first[0]], whole.ids[at_first[-1] + 1 : at_second[0]]
    after = whole.ids[at_second[-1] + 1 :]
    if len(before) != 1 or len(after) != 1 or not between or alone.ids != [*before, *text, *after]:
        return None
    return Frame(before[0], tuple(between), after[0], whole.type_ids[at_second[0]])
