"""Lay out wordpiece ids as padded batches, with one layout for each tower.

Every layout of the project is made here. So the retriever gets the same inputs when it builds the index, when it is
trained and when it answers questions.
Legend: B rows, L tokens of the longest row, M most hidden wordpieces of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from realmctl.models.precision import to_device
from realmctl.spans.query import Query
from realmctl.tokens.frame import Frame
from realmctl.tokens.tokenizer import Tokenizer

TokenSequence = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class TokenBatch:
    """A batch of token rows, padded to its longest row. The real tokens of a row come first.

    ids_BL: int64. mask_BL: bool, True at real tokens. segments_BL: int64, 0 or 1; 0 at padding. mask_on_host: the mask on the CPU, for a
    batch on another device, so that the layout of its tokens needs no answer from the device. unpooled: how many tokens at the start of each
    row pooling leaves out.
    """

    ids_BL: Tensor
    mask_BL: Tensor
    segments_BL: Tensor
    mask_on_host: Tensor | None = None
    unpooled: int = 0

    def __len__(self) -> int:
        return self.ids_BL.shape[0]

    @cached_property
    def lengths_B(self) -> Tensor:
        """Number of real tokens in each row, int64 [B]."""
        return self.mask_BL.sum(1)

    @property
    def pooled_BL(self) -> Tensor:
        """The tokens that pooling reads, bool [B, L]."""
        if not self.unpooled:
            return self.mask_BL
        return self.mask_BL & (torch.arange(self.mask_BL.shape[1], device=self.mask_BL.device) >= self.unpooled)

    def to(self, device: torch.device | str) -> TokenBatch:
        """Return the same batch on another device."""
        return TokenBatch(
            to_device(self.ids_BL, device),
            to_device(self.mask_BL, device),
            to_device(self.segments_BL, device),
            self.mask_BL if self.mask_on_host is None else self.mask_on_host,
            self.unpooled,
        )


@dataclass(frozen=True)
class QueryBatch:
    """Queries, laid out one a row, and their hidden wordpieces.

    position_BM: int64, the position in the row of each hidden wordpiece, 0 at unused slots. target_BM: int64, the wordpieces that
    belong there, 0 at unused slots. hidden_BM: bool, False at unused slots.
    """

    queries: Sequence[Query]
    packed: TokenBatch
    position_BM: Tensor
    target_BM: Tensor
    hidden_BM: Tensor

    @classmethod
    def of(cls, queries: Sequence[Query], packed: TokenBatch, frame: Frame) -> QueryBatch:
        """Return the batch of queries that are laid out in `frame`, alone or with a text behind them. They must fit."""
        shape = len(queries), max((1, *(query.hidden for query in queries)))
        position_BM, target_BM = np.zeros((2, *shape), dtype=np.int64)
        for row, query in enumerate(queries):
            first = len(frame.before)
            second = first + len(query.tokens) + len(frame.between)
            parts = [(first, query)] + ([(second, query.beside)] if query.beside else [])
            used = slice(query.hidden)
            position_BM[row, used] = np.concatenate([start + part.places for start, part in parts])
            target_BM[row, used] = np.concatenate([part.targets for _, part in parts])
        used_BM = np.arange(shape[1]) < np.array([query.hidden for query in queries], dtype=np.int64)[:, None]
        position, target = torch.from_numpy(position_BM), torch.from_numpy(target_BM)
        return cls(queries, packed, position, target, torch.from_numpy(used_BM))

    @property
    def target_M(self) -> Tensor:
        """The hidden wordpieces of all rows, one row after the other, int64."""
        return self.target_BM[self.hidden_BM]

    @property
    def place_M(self) -> Tensor:
        """Their positions in the flattened [B * L], int64."""
        row_B1 = torch.arange(len(self.queries))[:, None] * self.packed.ids_BL.shape[1]
        return (row_B1 + self.position_BM)[self.hidden_BM]


@dataclass(frozen=True)
class Collator:
    """Lay out token ids between the special tokens of one vocabulary, its `frame`.

    Sequences are integer arrays without special tokens. Each method says which sequence is cut when both do not fit. This
    follows the featurisers of ORQA and REALM (google-research/language, orqa/utils/bert_utils.py), which do not cut the
    longer sequence first. Layouts are written here with BERT's special tokens; other vocabularies have theirs in these places.

    at_start: gives a sequence as it is at the beginning of an input (`Tokenizer.at_start`).
    behind: gives a sequence behind a text with the ids of that text (`Tokenizer.behind`).
    """

    frame: Frame
    pad_id: int
    mask_id: int
    at_start: Callable[[TokenSequence], TokenSequence] = lambda tokens: tokens
    behind: Callable[[str, Sequence[int], TokenSequence], TokenSequence] = lambda _, before, tokens: np.concatenate(
        [np.asarray(before, np.int64), np.asarray(tokens, np.int64)]
    )

    @classmethod
    def of(cls, words: Tokenizer) -> Collator:
        """Return the collator of a vocabulary."""
        return cls(words.frame, words.pad, words.mask, words.at_start, words.behind)

    def query(self, token_lists: Sequence[TokenSequence], length: int) -> TokenBatch:
        """Return `[CLS] x [SEP]` in segment 0, at most `length` tokens."""
        return self._rows([tokens[: length - self.frame.around_one] for tokens in token_lists], None)

    def queries(self, queries: Sequence[Query], length: int, length_beside: int = 0) -> QueryBatch:
        """Return `[CLS] x [SEP]`, or `[CLS] x [SEP] text [SEP]` of queries beside texts. Both must fit into their lengths."""
        tokens, beside = [query.tokens for query in queries], [query.beside.tokens for query in queries if query.beside]
        packed = self.joint(tokens, beside, length, length_beside) if beside else self.query(tokens, length)
        return QueryBatch.of(queries, packed, self.frame)

    def block(self, titles: Sequence[TokenSequence], bodies: Sequence[TokenSequence], length: int = 288) -> TokenBatch:
        """Return `[CLS] title [SEP] body [SEP]`. The body is cut to the room that the title leaves in `length`.

        The null document is an empty title and an empty body: `[CLS] [SEP] [SEP]`, segments 0 0 1.
        """
        most = length - self.frame.around_two
        titles = [title[:most] for title in titles]
        room = [most - len(title) for title in titles]
        return self._rows(titles, [body[:most] for body, most in zip(bodies, room, strict=True)])

    def joint(
        self, queries: Sequence[TokenSequence], bodies: Sequence[TokenSequence], query_length: int, block_length: int
    ) -> TokenBatch:
        """Return `[CLS] x [SEP] body [SEP]` without the title. x and body are cut to their own lengths."""
        return self._rows(
            [query[: query_length - self.frame.around_one] for query in queries],
            [body[: block_length - self.frame.around_one] for body in bodies],
        )

    def reader(
        self, questions: Sequence[TokenSequence], bodies: Sequence[TokenSequence], length: int = 320
    ) -> tuple[TokenBatch, Tensor]:
        """Return `[CLS] question [SEP] body [SEP]` of at most `length` tokens. The body is cut to the room that is left.

        Also returns block_start_B, int64: the position of each row's first block token.
        """
        most = length - self.frame.around_two
        questions = [question[:most] for question in questions]
        room = [most - len(question) for question in questions]
        packed = self._rows(questions, [body[:most] for body, most in zip(bodies, room, strict=True)])
        before = len(self.frame.before) + len(self.frame.between)
        return packed, torch.tensor([len(question) + before for question in questions], dtype=torch.long)

    def _rows(self, firsts: Sequence[TokenSequence], seconds: Sequence[TokenSequence] | None) -> TokenBatch:
        frame, start = self.frame, len(self.frame.before)
        middle = np.array(frame.after if seconds is None else frame.between, dtype=np.int64)
        first_end = np.array([start + len(first) + len(middle) for first in firsts], dtype=np.int64)
        end = first_end.copy()
        if seconds is not None:
            end += np.array([len(second) + len(frame.after) for second in seconds], dtype=np.int64)
        ids = np.full((len(firsts), int(end.max(initial=0))), self.pad_id, dtype=np.int64)
        ids[:, :start] = frame.before
        for row, first in enumerate(firsts):
            ids[row, start : start + len(first)] = first
            ids[row, start + len(first) : first_end[row]] = middle
        for row, second in enumerate(seconds or ()):
            ids[row, first_end[row] : end[row]] = [*second, *frame.after]
        position = np.arange(ids.shape[1])
        mask = position < end[:, None]
        segments = (mask & (position >= first_end[:, None])).astype(np.int64) * self.frame.second_segment
        return TokenBatch(torch.from_numpy(ids), torch.from_numpy(mask), torch.from_numpy(segments))


def block_token_mask(packed: TokenBatch, block_start_B: Tensor) -> Tensor:
    """Return bool [B, L], True at the block's tokens of a reader batch; False at the question and at special tokens."""
    position_L = torch.arange(packed.ids_BL.shape[1], device=packed.ids_BL.device)
    start_B1, stop_B1 = block_start_B[:, None].to(position_L.device), packed.lengths_B[:, None] - 1
    return (position_L >= start_B1) & (position_L < stop_B1)
