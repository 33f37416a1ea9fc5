"""A causal language model as the reader: it reads the block, then the text up to what is hidden, and goes on with the hidden text.

What follows the hidden text is left out, because the model reads from left to right. Keys and values of a block are computed once for all
texts that it is read with, where the model's cache keeps all positions; other models read each row whole. Both give the same
log-probabilities.
Legend: see `reading.py`. P blocks of a group, S tokens after the block, T = M most hidden tokens of a group.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import DynamicCache

from realmctl.errors import InputError
from realmctl.lab.language_models.models.model import LanguageModel
from realmctl.lab.language_models.models.prompts import BlockPrompt, split_at
from realmctl.lab.language_models.models.reading import (
    LOGITS_AT_ONCE,
    LmReader,
    ModelInput,
    ReadingLimits,
    groups,
    in_groups,
    targets_first,
)
from realmctl.models.evaluating import evaluating
from realmctl.models.precision import to_device
from realmctl.spans.query import HiddenText

TOKENS_AT_ONCE = 1 << 14
"""Tokens of blocks whose keys and values are held at a time."""


States = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer: [P, heads, L, width] of a group, [heads, L, width] of one block."""


class KeptStates:
    """Keys and values of the blocks that were read last, at most `budget` bytes between two calls of `trim`."""

    def __init__(self) -> None:
        self.budget, self.nbytes = 0.0, 0
        self._states: OrderedDict[tuple[int, ...], States] = OrderedDict()

    def __contains__(self, block: tuple[int, ...]) -> bool:
        return block in self._states

    def add(self, block: tuple[int, ...], states: States) -> None:
        self._states[block] = [(keys.clone(), values.clone()) for keys, values in states]
        self.nbytes += _nbytes(states)

    def get(self, block: tuple[int, ...]) -> States | None:
        """Return the states of a block, which is then the last that was read. None for one that is not kept."""
        if block in self._states:
            self._states.move_to_end(block)
        return self._states.get(block)

    def trim(self) -> None:
        """Forget the blocks that were read longest ago, until the others fit."""
        while self.nbytes > self.budget:
            self.nbytes -= _nbytes(self._states.popitem(last=False)[1])


def _nbytes(states: States) -> int:
    return sum(keys.nbytes + values.nbytes for keys, values in states)


class CausalReader(LmReader):
    """GPT-2's kind. Raises InputError for a model that sees what follows a token, such as a BERT."""

    kind = "causal"

    def __init__(self, model: LanguageModel, prompt: BlockPrompt, limits: ReadingLimits) -> None:
        super().__init__(model, prompt, limits)
        require_causal(model)
        self.kept = KeptStates()
        self.reuses_blocks = model.keeps_all_positions

    def pair(self, text: HiddenText) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The text before what is hidden, and the hidden text. The end of a text that is too long is kept."""
        source, target = split_at(self.model, text.before, text.hidden)
        target = target[: self.limits.target]
        return tuple(source[max(0, len(source) - (self.room - self.taken([], target))) :]), tuple(target)

    def input(self, block: Sequence[int], source: Sequence[int]) -> tuple[int, ...]:
        return (self.model.special.start, *block, *source)

    def taken(self, source: Sequence[int], target: Sequence[int]) -> int:
        return 1 + len(source) + len(target)  # with the token that begins a text

    def rows_log_prob(self, rows: Sequence[ModelInput]) -> Tensor:
        return self._with_shared_blocks(rows) if self.reuses_blocks else self._whole(rows)

    def _whole(self, rows: Sequence[ModelInput]) -> Tensor:
        """Each row is computed from its first token to its last."""
        lengths = [1 + sum(map(len, row)) for row in rows]
        return in_groups(rows, lengths, LOGITS_AT_ONCE // self.model.net.config.vocab_size, self._whole_group)

    def _whole_group(self, rows: Sequence[ModelInput]) -> Tensor:
        sources = [self.input(row.block, row.source) for row in rows]
        batch = self.model.batch(sources, [row.target for row in rows], ended=False).to(self._device)
        log_prob_RL, _ = self.model.log_prob(batch)
        return targets_first(log_prob_RL, [len(source) - 1 for source in sources], rows)

    def _with_shared_blocks(self, rows: Sequence[ModelInput]) -> Tensor:
        """Keys and values of each block are computed once. The last token of a block is read with each text, since it predicts the first token."""
        blocks = [*dict.fromkeys(row.block for row in rows)]
        found: list[Tensor] = []
        order: list[int] = []
        width = max(len(row.target) for row in rows)
        for group in groups([len(block) for block in blocks], TOKENS_AT_ONCE):
            place_of = {blocks[place]: number for number, place in enumerate(group)}
            past, mask_PL = self._kept_states([(self.model.special.start, *block)[:-1] for block in place_of])
            mine = [number for number, row in enumerate(rows) if row.block in place_of]
            lengths = [1 + len(rows[number].source) + len(rows[number].target) for number in mine]
            most = max(1, LOGITS_AT_ONCE // (self.model.net.config.vocab_size * (width + 1))) * max(lengths)
            for part in groups(lengths, most):
                numbers = [mine[each] for each in part]
                part_RM = self._after(past, mask_PL, place_of, [rows[number] for number in numbers])
                found.append(F.pad(part_RM, (0, width - part_RM.shape[1])))
                order += numbers
        return torch.cat(found)[to_device(torch.tensor(order).argsort(), self._device)]

    def _kept_states(self, prefixes: Sequence[tuple[int, ...]]) -> tuple[States, Tensor]:
        """What `_states` gives. Those of earlier calls are not computed again, as long as they are kept."""
        if not self.kept.budget or torch.is_grad_enabled():
            return self._states(prefixes)
        if missing := [prefix for prefix in prefixes if prefix and prefix not in self.kept]:
            past, _ = self._states(missing)
            for row, prefix in enumerate(missing):
                own = [(keys[row, :, -len(prefix) :], values[row, :, -len(prefix) :]) for keys, values in past]
                self.kept.add(prefix, own)
        length = max(map(len, prefixes))
        found = [self.kept.get(prefix) for prefix in prefixes]
        self.kept.trim()
        if not length:
            return self._states(prefixes)
        layers = next(len(one) for one in found if one)
        shape = next(one for one in found if one)[0][0]
        empty = [(shape[:, :0], shape[:, :0])] * layers

        def stacked(layer: int, part: int) -> Tensor:
            own = [(one or empty)[layer][part] for one in found]
            return torch.stack([F.pad(tensor, (0, 0, length - tensor.shape[1], 0)) for tensor in own])

        _, mask_PL = self.model.padded(prefixes, left=True)
        return [(stacked(layer, 0), stacked(layer, 1)) for layer in range(layers)], to_device(mask_PL, self._device)

    def _states(self, prefixes: Sequence[tuple[int, ...]]) -> tuple[States, Tensor]:
        """Keys and values of each layer for texts that stand first, and a mask of their tokens, int64 [P, L]."""
        ids_PL, mask_PL = (to_device(tensor, self._device) for tensor in self.model.padded(prefixes, left=True))
        if not ids_PL.shape[1]:
            return [], mask_PL
        cache = DynamicCache()
        self.model.net(
            input_ids=ids_PL,
            attention_mask=mask_PL,
            position_ids=(mask_PL.cumsum(1) - 1).clamp(min=0),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return [(layer.keys, layer.values) for layer in cache.layers], mask_PL

    def _after(
        self,
        past: States,
        mask_PL: Tensor,
        place_of: dict[tuple[int, ...], int],
        rows: Sequence[ModelInput],
    ) -> Tensor:
        """log p of the targets of rows whose blocks have these keys and values, [R, M]."""
        start = self.model.special.start
        suffixes = [((start, *row.block)[-1], *row.source, *row.target) for row in rows]
        ids_RS, own_RS = (to_device(tensor, self._device) for tensor in self.model.padded(suffixes, left=True))
        place_R = to_device(torch.tensor([place_of[row.block] for row in rows]), self._device)
        cache = DynamicCache()
        for number, (keys, values) in enumerate(past):
            cache.update(keys[place_R], values[place_R], number)
        mask_RL = torch.cat([mask_PL[place_R], own_RS], 1)
        width = max(len(row.target) for row in rows)
        logits_RTV = self.model.net(
            input_ids=ids_RS,
            attention_mask=mask_RL,
            position_ids=(mask_RL.cumsum(1) - 1).clamp(min=0)[:, -ids_RS.shape[1] :],
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=width + 1,
        ).logits[:, :-1]
        loss_RT = F.cross_entropy(logits_RTV.float().transpose(1, 2), ids_RS[:, -width:], reduction="none")
        return targets_first(-loss_RT, [width - len(row.target) for row in rows], rows)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device


def require_causal(model: LanguageModel) -> None:
    """Check on two rows that differ in their last token that the model predicts the same before it. Raises InputError for a model that does not."""
    row = [model.special.start, *range(min(3, model.net.config.vocab_size - 1))]
    ids_BL = torch.tensor([row, [*row[:-1], row[-1] + 1]])
    with evaluating(model.net):
        one, other = model.net(input_ids=ids_BL, use_cache=False).logits[:, :-1]
    if (one - other).abs().max() > max(1e-3, 2 * torch.finfo(one.dtype).eps) * one.abs().max():
        raise InputError(
            f"The model of type {model.net.config.model_type} sees what follows a token, so it cannot go on with a text. Name a causal "
            "model or a T5; an encoder reads with --encoder or --bert."
        )
