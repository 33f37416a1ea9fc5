"""A language model with its tokenizer: loss of a target text after a source text, and generation.

A sequence-to-sequence model reads the source in its encoder. A causal model reads source and target as one sequence, and
only the target counts in its loss. Every target ends with the end-of-text token.
Legend: B pairs, L tokens of the longest row, V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer as LibraryTokenizer
from torch import Tensor, nn
from transformers import DynamicCache, GenerationConfig, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from realmctl.execution.batches import batched
from realmctl.models.inputs import TokenSequence
from realmctl.models.precision import to_device

IGNORED = -100
"""The label of positions that do not count, in transformers and in PyTorch."""


@dataclass(frozen=True)
class SpecialIds:
    """Ids of the end-of-text token, of padding, and of the token that begins a text.

    Padding is always masked, so it may be the end-of-text token. So may the first token, as in GPT-2.
    """

    end: int
    pad: int
    start: int


@dataclass(frozen=True)
class SourceTargetBatch:
    """Padded inputs of the model: ids_BL and mask_BL (int64) and label_BL, int64, -100 where nothing is predicted."""

    ids_BL: Tensor
    mask_BL: Tensor
    label_BL: Tensor

    @property
    def wanted(self) -> int:
        """Number of tokens to predict."""
        return int((self.label_BL != IGNORED).sum())

    def to(self, device: torch.device) -> SourceTargetBatch:
        """Return the same batch on another device."""
        return SourceTargetBatch(*(to_device(part, device) for part in (self.ids_BL, self.mask_BL, self.label_BL)))


class LanguageModel(nn.Module):
    """A model of transformers that writes text, and its tokenizer."""

    def __init__(self, net: PreTrainedModel, tokenizer: LibraryTokenizer, special: SpecialIds) -> None:
        super().__init__()
        self.net, self.tokenizer, self.special = net, tokenizer, special

    @property
    def positions(self) -> int | None:
        """The most tokens of a row; None for a model without such a limit, such as T5."""
        most = getattr(self.net.config, "max_position_embeddings", None)
        return most if isinstance(most, int) else None

    @property
    def reads_source_apart(self) -> bool:
        """Whether an encoder reads the source: True for T5's kind, False for a causal model."""
        return bool(self.net.config.is_encoder_decoder)

    @property
    def keeps_all_positions(self) -> bool:
        """Whether keys and values of what stands first can be computed once for several rows: a causal model, and no sliding windows."""
        if self.reads_source_apart:
            return False
        accepted = inspect.signature(self.net.forward).parameters
        layers = DynamicCache(config=self.net.config).layers
        return (
            {"position_ids", "past_key_values", "logits_to_keep"} <= accepted.keys()
            and bool(layers)
            and all(type(layer) is DynamicLayer for layer in layers)
        )

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a text, without those that the tokenizer adds at its ends."""
        found: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return found

    def text(self, ids: TokenSequence) -> str:
        """Return the text of tokens, without special tokens and without space at its ends."""
        found: str = self.tokenizer.decode([int(number) for number in ids], skip_special_tokens=True)
        return found.strip()

    def batch(
        self, sources: Sequence[TokenSequence], targets: Sequence[TokenSequence], *, ended: bool = True
    ) -> SourceTargetBatch:
        """Lay out pairs of source and target. The end-of-text token is added to every target if `ended`, and to T5's sources."""
        end = self.special.end
        ends = [end] if ended else []
        ended_targets = [[*target, *ends] for target in targets]
        if self.reads_source_apart:
            ids_BL, mask_BL = self.padded([[*source, end] for source in sources])
            return SourceTargetBatch(ids_BL, mask_BL, filled(ended_targets, IGNORED))
        ids_BL, mask_BL = self.padded(
            [[*source, *target] for source, target in zip(sources, ended_targets, strict=True)]
        )
        labels = [[IGNORED] * len(source) + target for source, target in zip(sources, ended_targets, strict=True)]
        return SourceTargetBatch(ids_BL, mask_BL, filled(labels, IGNORED))

    def log_prob(self, batch: SourceTargetBatch) -> tuple[Tensor, Tensor]:
        """Return log p of each token to predict, float32 [B, L], 0 where nothing is predicted; and whether it is the likeliest."""
        kept = {"labels": batch.label_BL} if self.reads_source_apart else {}
        logits_BLV = self.net(
            input_ids=batch.ids_BL, attention_mask=batch.mask_BL, use_cache=False, **kept
        ).logits.float()
        label_BL = batch.label_BL
        if not self.reads_source_apart:  # position i predicts token i + 1
            logits_BLV, label_BL = logits_BLV[:, :-1], label_BL[:, 1:]
        loss_BL = F.cross_entropy(logits_BLV.transpose(1, 2), label_BL, ignore_index=IGNORED, reduction="none")
        return -loss_BL, (logits_BLV.argmax(-1) == label_BL) & (label_BL != IGNORED)

    forward = log_prob

    @torch.no_grad()
    def generate(
        self,
        sources: Sequence[TokenSequence],
        beams: int,
        longest: int,
        count: int,
        log_weight_R: Tensor | None = None,
    ) -> list[list[list[int]]]:
        """Return the `count` best targets of each source, at most `beams`, without special tokens at their end.

        One beam is greedy decoding. Beams are ranked by mean log-probability. With `log_weight_R`, the logarithms of weights of the sources, every
        token is chosen by the mixture of their distributions, so that all sources have one target.
        """
        count = min(count, beams)
        ends = [self.special.end] if self.reads_source_apart else []
        ids_BL, mask_BL = self.padded([[*source, *ends] for source in sources], left=not self.reads_source_apart)
        device = next(self.net.parameters()).device
        made = self.net.generate(
            input_ids=ids_BL.to(device),
            attention_mask=mask_BL.to(device),
            logits_processor=[] if log_weight_R is None else [_Mixture(log_weight_R)],
            generation_config=self.generation(longest, num_beams=beams, num_return_sequences=count, length_penalty=1.0),
        )
        first = 1 if self.reads_source_apart else ids_BL.shape[1]
        rows = [self._until_end(row) for row in made[:, first:].tolist()]
        return batched(rows, count)

    def generation(self, longest: int, **more: float) -> GenerationConfig:
        """Return the settings of a generation that draws nothing: at most `longest` tokens, and the special ids of this model."""
        return GenerationConfig(
            do_sample=False,
            max_new_tokens=longest,
            eos_token_id=self.special.end,
            pad_token_id=self.special.pad,
            bos_token_id=getattr(self.net.config, "bos_token_id", None),
            decoder_start_token_id=getattr(self.net.config, "decoder_start_token_id", None),
            **more,
        )

    def _until_end(self, row: list[int]) -> list[int]:
        return row[: row.index(self.special.end)] if self.special.end in row else row

    def padded(self, rows: Sequence[TokenSequence], left: bool = False) -> tuple[Tensor, Tensor]:
        """Return rows as one tensor, padded at their ends or on their left, and a mask of their tokens, both int64 [B, L]."""
        ones = [[1] * len(row) for row in rows]
        return filled(rows, self.special.pad, left), filled(ones, 0, left)


class _Mixture:
    """The mixture of the next token's distributions of all rows, for each of them."""

    def __init__(self, log_weight_R: Tensor) -> None:
        self.log_weight_R1 = log_weight_R[:, None]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        mixed_V = (scores.float().log_softmax(-1) + self.log_weight_R1).logsumexp(0)
        return mixed_V.expand_as(scores)


def filled(rows: Sequence[TokenSequence], value: int, left: bool = False) -> Tensor:
    """Return rows of different lengths as one int64 tensor, filled with `value` at their ends, or on their left."""
    filled_BL = torch.full((len(rows), max(map(len, rows))), value, dtype=torch.long)
    for number, row in enumerate(rows):
        place = slice(filled_BL.shape[1] - len(row), None) if left else slice(len(row))
        filled_BL[number, place] = torch.tensor([int(token) for token in row], dtype=torch.long)
    return filled_BL
