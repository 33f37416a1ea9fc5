"""A language model as the reader p(y|z,x): the log-likelihood of a hidden text y, given the text x around it and a block z.

The block stands before the text, as `--block-prompt` says; the null document is the text without a block. Sources: REPLUG (Shi et al. 2023, arXiv
2301.12652), Atlas (Izacard et al. 2022, arXiv 2208.03299), EMDR2 (Sachan et al. 2021, arXiv 2106.05346).
A kind of reader is one file: `causal.py`, `seq2seq.py`.
Legend: B texts, N candidates, R rows = B * N, M hidden tokens, L tokens of the longest row, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.errors import ConfigError
from realmctl.lab.language_models.models.model import LanguageModel
from realmctl.lab.language_models.models.prompts import BlockPrompt
from realmctl.models.precision import to_device
from realmctl.spans.query import HiddenText

LOGITS_AT_ONCE = 1 << 28
"""Vocabulary logits held at a time (1 GiB in fp32)."""
UNEVEN = 1.25
"""The longest row of a group may have this many times the tokens of its shortest one."""
REMEMBERED = 8192
"""Blocks and texts whose tokens are kept, so that a block that is retrieved often is not tokenized each time."""


class ReadBlock(NamedTuple):
    """Title and text of a block."""

    title: str
    text: str


class ModelInput(NamedTuple):
    """What the model reads in one row: tokens of the block with its prompt (none for the null document), of the visible text, and of the
    hidden one."""

    block: tuple[int, ...]
    source: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True)
class ReadingLimits:
    """Most tokens of a row, and of what is hidden; the rest of a longer hidden text is not asked for."""

    row: int
    target: int


class LmReader(nn.Module, ABC):
    """Base of the kinds of language models that read.

    Args:
        model: The language model.
        prompt: How a block stands before a text.
        limits: Most tokens. The model's own positions count too.

    Raises:
        ConfigError: The limits leave no room for a block.
    """

    kind: str
    """Name of the kind, for messages."""

    def __init__(self, model: LanguageModel, prompt: BlockPrompt, limits: ReadingLimits) -> None:
        super().__init__()
        self.model, self.prompt, self.limits = model, prompt, limits
        self.room = min(limits.row, model.positions or limits.row)
        if self.room < limits.target + 2:
            raise ConfigError(
                f"--target-length {limits.target} leaves no room for a block: a row has {self.room} tokens (--reader-length "
                f"{limits.row}; the model has {model.positions or 'any number of'} positions). Lower --target-length."
            )
        self.cut_blocks = self.read_blocks = 0
        self.tokens = lru_cache(REMEMBERED)(self.pair)
        self._block_tokens = lru_cache(REMEMBERED)(lambda passage: prompt.tokens(model, passage.title, passage.text))

    def require_pairs(self) -> None:
        """Check that the model can read hidden text. Raises InputError where its vocabulary lacks a token for that."""

    @abstractmethod
    def pair(self, text: HiddenText) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the tokens of what is visible of a text, and those that count in its likelihood."""

    @abstractmethod
    def rows_log_prob(self, rows: Sequence[ModelInput]) -> Tensor:
        """Return log p of each hidden token of each row, float32 [R, M]; any number beyond a row's own."""

    @abstractmethod
    def input(self, block: Sequence[int], source: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens that stand before the hidden ones, without what `LanguageModel.batch` and `generate` add."""

    @abstractmethod
    def taken(self, source: Sequence[int], target: Sequence[int]) -> int:
        """Return how many tokens of an input are not the block's."""

    def log_prob(
        self, texts: Sequence[HiddenText], blocks: Sequence[ReadBlock], place_BN: NDArray[np.int64]
    ) -> tuple[Tensor, Tensor]:
        """Return log p(y_m|z_n,x), float32 [B, N, M], and which slots hold a hidden token, bool [B, M], on the model's device.

        A block that makes a row too long is cut at its end.

        Args:
            texts: Each with its hidden part.
            blocks: The blocks, each once.
            place_BN: Which block each candidate is; below 0 for none.
        """
        pairs, pieces = [self.tokens(text) for text in texts], [self._block_tokens(block) for block in blocks]
        rows = [
            ModelInput(self._cut(pieces[place], self.taken(*pair)) if place >= 0 else (), *pair)
            for pair, places in zip(pairs, place_BN.tolist(), strict=True)
            for place in places
        ]
        log_prob_RM = self.rows_log_prob(rows)
        count_B = to_device(torch.tensor([len(target) for _, target in pairs]), log_prob_RM.device)
        hidden_BM = torch.arange(log_prob_RM.shape[1], device=log_prob_RM.device) < count_B[:, None]
        return log_prob_RM.view(*place_BN.shape, -1), hidden_BM

    forward = log_prob

    def fitted(self, passage: ReadBlock | None, source: Sequence[int], written: int) -> tuple[int, ...]:
        """Return the tokens of a block with its prompt, cut at its end so that source and `written` tokens fit beside it; none for None."""
        taken = self.taken(source, range(written))
        return () if passage is None else self._cut(self._block_tokens(passage), taken)

    def _cut(self, pieces: tuple[list[int], list[int], list[int]], taken: int) -> tuple[int, ...]:
        """A block with its prompt in the room beside `taken` tokens; nothing where its prompt alone does not fit."""
        before, body, after = pieces
        room = self.room - taken - len(before) - len(after)
        self.read_blocks += 1
        self.cut_blocks += room < len(body)
        return (*before, *body[:room], *after) if room > 0 else ()

    def cut_share(self) -> tuple[int, int]:
        """Return how many blocks were cut, and read, since the last call."""
        counted = self.cut_blocks, self.read_blocks
        self.cut_blocks = self.read_blocks = 0
        return counted


def groups(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield the places of rows in groups of about equal length, short ones first: at most `most` padded tokens in each, but at least a row."""
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        longest = lengths[place]
        if group and (longest * (len(group) + 1) > most or longest > UNEVEN * lengths[group[0]] + 1):
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def in_groups(
    rows: Sequence[ModelInput], lengths: Sequence[int], most: int, log_prob: Callable[[Sequence[ModelInput]], Tensor]
) -> Tensor:
    """Compute rows in groups of about equal length. Returns what `log_prob` gives for each row, in their order, [R, M]."""
    width = max(len(row.target) for row in rows)
    found, places = [], []
    for group in groups(lengths, most):
        part_RM = log_prob([rows[place] for place in group])
        found.append(nn.functional.pad(part_RM, (0, width - part_RM.shape[1])))
        places += group
    return torch.cat(found)[to_device(torch.from_numpy(np.argsort(places)), found[0].device)]


def targets_first(log_prob_RL: Tensor, first_R: Sequence[int], rows: Sequence[ModelInput]) -> Tensor:
    """Return [R, M] whose row r begins at place first_R[r] of log_prob_RL."""
    width = max(len(row.target) for row in rows)
    place_RM = torch.tensor(first_R)[:, None] + torch.arange(width)
    return log_prob_RL.gather(1, to_device(place_RM.clamp(max=log_prob_RL.shape[1] - 1), log_prob_RL.device))
