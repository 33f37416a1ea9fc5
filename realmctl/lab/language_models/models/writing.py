"""A language model goes on with prompts: greedily, or by random numbers that each text has of its own.

Prompts that begin alike share the keys and values of their common beginning, which are computed once, and all texts of one prompt share
those of the prompt. This needs a causal model whose cache keeps all positions; other models read each row whole. Both give the same texts.
Legend: B prompts, K texts of a prompt, R rows = B * K, P tokens that all prompts begin with, L tokens of the longest prompt, T tokens of the
longest text, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from realmctl.execution.batches import batched
from realmctl.lab.language_models.models.model import LanguageModel
from realmctl.models.inputs import TokenSequence
from realmctl.models.precision import to_device


@dataclass(frozen=True)
class Written:
    """What a model wrote after a prompt.

    tokens: up to the one that ended it, which is the last. log_prob: mean of log p of these tokens, by the model as it is, whatever the
    temperature. ended: False where the text was cut at its longest.
    """

    tokens: tuple[int, ...]
    log_prob: float
    ended: bool


class PromptWriter:
    """Goes on with prompts.

    Args:
        model: A language model in evaluation mode.
        beginning: Tokens with which most prompts begin; a prompt may leave them at any place.
        longest: T.
        ends: Takes the text so far, and returns whether it is complete. The end-of-text token ends a text too.
        temperature: Of sampling; 0 takes the likeliest token.
    """

    def __init__(
        self,
        model: LanguageModel,
        beginning: TokenSequence,
        longest: int,
        ends: Callable[[str], bool],
        temperature: float = 0.0,
    ) -> None:
        self.model, self.beginning, self.longest, self.ends = model, [*beginning], longest, ends
        self.temperature, self.shares = temperature, model.keeps_all_positions
        self._states = DynamicCache()

    @torch.no_grad()
    def write(self, prompts: Sequence[TokenSequence], uniform_BKT: NDArray[np.float64]) -> list[list[Written]]:
        """Return K texts of each prompt.

        Args:
            prompts: Tokens, without those that `LanguageModel.batch` adds for T5's kind.
            uniform_BKT: A random number from 0 to 1 for each token; at temperature 0 only its shape counts.
        """
        each, device = uniform_BKT.shape[1], next(self.model.net.parameters()).device
        ends = [self.model.special.end] if self.model.reads_source_apart else []
        rows = [[*prompt, *ends] for prompt in prompts]
        first = self._shared(rows) if self.shares else 0
        ids_BL, mask_BL = self.model.padded([row[first:] for row in rows], left=not self.model.reads_source_apart)
        if first:
            begin_BP = torch.tensor(rows[0][:first]).expand(len(rows), first)
            ids_BL, mask_BL = torch.cat([begin_BP, ids_BL], 1), torch.cat([torch.ones_like(begin_BP), mask_BL], 1)
        ids_BL, mask_BL = to_device(ids_BL, device), to_device(mask_BL, device)
        past = {"past_key_values": self._read(ids_BL, mask_BL, first, each)} if self.shares else {}
        uniform_RT = torch.from_numpy(uniform_BKT.reshape(-1, uniform_BKT.shape[2]))
        chooser = _Chooser(to_device(uniform_RT, device), self.temperature)
        start = 1 if self.model.reads_source_apart else ids_BL.shape[1]
        stop = _Stop(self.model, start, self.ends)
        made = self.model.net.generate(
            input_ids=ids_BL.repeat_interleave(each, 0),
            attention_mask=mask_BL.repeat_interleave(each, 0),
            logits_processor=[chooser],
            stopping_criteria=[stop],
            generation_config=self.model.generation(self.longest),
            **past,
        )
        log_prob_RT = torch.stack(chooser.log_prob_R, 1).cpu()
        found = [self._written(*row, stop) for row in zip(made[:, start:].tolist(), log_prob_RT, strict=True)]
        return batched(found, each)

    def _written(self, row: list[int], log_prob_T: Tensor, stop: _Stop) -> Written:
        count = next((n for n in range(1, len(row) + 1) if stop.ended(row[:n])), 0)
        return Written(tuple(row[: count or len(row)]), float(log_prob_T[: count or len(row)].mean()), bool(count))

    def _shared(self, rows: Sequence[list[int]]) -> int:
        """How many tokens of the beginning all rows have, with one token left in each."""
        alike = zip(self.beginning, *rows, strict=False)
        count = next((n for n, tokens in enumerate(alike) if len({*tokens}) > 1), len(self.beginning))
        return min(count, *(len(row) - 1 for row in rows))

    def _read(self, ids_BL: Tensor, mask_BL: Tensor, first: int, each: int) -> DynamicCache:
        """Keys and values of all tokens of the prompts but their last, `each` times in a row."""
        if first and not self._states.layers:
            begin_1P = torch.tensor([self.beginning], device=ids_BL.device)
            self._forward(begin_1P, torch.ones_like(begin_1P), self._states)
        cache = DynamicCache()
        for number, layer in enumerate(self._states.layers if first else []):
            keys, values = (part[:, :, :first].expand(len(ids_BL), -1, -1, -1) for part in (layer.keys, layer.values))
            cache.update(keys, values, number)
        if ids_BL.shape[1] - first > 1:
            self._forward(ids_BL[:, first:-1], mask_BL[:, :-1], cache)
        if each > 1:
            cache.batch_repeat_interleave(each)
        return cache

    def _forward(self, ids_BS: Tensor, mask_BL: Tensor, cache: DynamicCache) -> None:
        """Read the last tokens of rows; `cache` has those before, and gets these."""
        self.model.net(
            input_ids=ids_BS,
            attention_mask=mask_BL,
            position_ids=(mask_BL.cumsum(1) - 1).clamp(min=0)[:, -ids_BS.shape[1] :],
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )


class _Chooser:
    """A logits processor that leaves one token of each row: the likeliest, or the one that the row's random number chooses."""

    def __init__(self, uniform_RT: Tensor, temperature: float) -> None:
        self.uniform_RT, self.temperature = uniform_RT, temperature
        self.log_prob_R: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scores_RV = scores.float()
        chosen_R1 = scores_RV.argmax(-1, keepdim=True)
        if self.temperature:
            below_RV = (scores_RV / self.temperature).softmax(-1).double().cumsum(-1)
            uniform_R1 = self.uniform_RT[:, len(self.log_prob_R), None] * below_RV[:, -1:]
            chosen_R1 = torch.searchsorted(below_RV, uniform_R1, right=True).clamp(max=below_RV.shape[1] - 1)
        self.log_prob_R.append(scores_RV.log_softmax(-1).gather(1, chosen_R1)[:, 0])
        return torch.full_like(scores, -torch.inf).scatter(1, chosen_R1, 0.0)


class _Stop:
    """A stopping criterion that looks at the text of each row."""

    def __init__(self, model: LanguageModel, start: int, ends: Callable[[str], bool]) -> None:
        self.model, self.start, self.ends = model, start, ends

    def ended(self, row: list[int]) -> bool:
        return row[-1] == self.model.special.end or self.ends(
            self.model.tokenizer.decode(row, skip_special_tokens=True)
        )

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        return torch.tensor([self.ended(row) for row in input_ids[:, self.start :].tolist()], device=input_ids.device)
