"""A sequence-to-sequence model as the reader: its encoder reads block and text, and its decoder writes what a sentinel stands for.

Source: Raffel et al. 2020 (arXiv 1910.10683), section 3.1.4. The likelihood is that of the whole target of T5's training, sentinels and
end-of-text token included, so that the model says where the hidden text ends.
Legend: see `reading.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from realmctl.errors import InputError
from realmctl.lab.language_models.models.prompts import SENTINELS, sentinel_ids, span_texts
from realmctl.lab.language_models.models.reading import LOGITS_AT_ONCE, LmReader, ModelInput, in_groups
from realmctl.spans.query import HiddenText


class Seq2SeqReader(LmReader):
    """T5's kind."""

    kind = "seq2seq"

    def require_pairs(self) -> None:
        if sentinel_ids(self.model) is None:
            raise InputError(
                f"A sequence-to-sequence model reads with T5's sentinels {' and '.join(SENTINELS)}, which its tokenizer lacks. Name a T5, "
                "or a causal model."
            )

    def pair(self, text: HiddenText) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The text with a sentinel for what is hidden, and T5's target. A text that is too long keeps what is around the sentinel."""
        source_text, target_text = span_texts(text)
        source, target = self.model.ids(source_text), [*self.model.ids(target_text), self.model.special.end]
        most = self.room - self.taken([], target)
        place = source.index(self.model.ids(SENTINELS[0])[0])
        first = max(0, min(place - most // 2, len(source) - most))
        return tuple(source[first : first + most]), tuple(target[: self.limits.target])

    def input(self, block: Sequence[int], source: Sequence[int]) -> tuple[int, ...]:
        return (*block, *source)

    def taken(self, source: Sequence[int], target: Sequence[int]) -> int:
        return len(source) + 1  # the end-of-text token

    def rows_log_prob(self, rows: Sequence[ModelInput]) -> Tensor:
        lengths = [len(row.block) + len(row.source) for row in rows]
        longest = max(len(row.target) for row in rows)
        most_rows = max(1, LOGITS_AT_ONCE // (longest * self.model.net.config.vocab_size))
        return in_groups(rows, lengths, most_rows * max(lengths), self._group)

    def _group(self, rows: Sequence[ModelInput]) -> Tensor:
        device = next(self.model.parameters()).device
        batch = self.model.batch(
            [self.input(row.block, row.source) for row in rows], [row.target for row in rows], ended=False
        )
        log_prob_RM, _ = self.model.log_prob(batch.to(device))
        return log_prob_RM
