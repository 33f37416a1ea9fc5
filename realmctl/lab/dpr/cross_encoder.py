"""A cross-encoder reads a query and a passage together, and says how relevant the passage is.

It is a sequence-classification model in Hugging Face's layout, as sentence-transformers' CrossEncoder has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForSequenceClassification

from realmctl.errors import InputError
from realmctl.execution.batches import batched
from realmctl.models.foreign_model import open_foreign
from realmctl.models.precision import pick_device

BATCH_SIZE = 32


class CrossEncoder:
    """Scores pairs of texts. The score is a probability: the sigmoid of one label, or the softmax's share of the second of two."""

    def __init__(self, folder: Path, device: str = "auto") -> None:
        """Load the model. Raises: see `open_foreign`; InputError for a model with more than two labels."""
        flag = f"--cross-encoder {folder}"
        self._tokenizer, model, self._length = open_foreign(
            folder, AutoModelForSequenceClassification, "sequence-classification model", flag
        )
        if model.config.num_labels > 2:
            raise InputError(
                f"{flag}: it has {model.config.num_labels} labels, and a cross-encoder has one or two. Name another."
            )
        self._device = pick_device(device)
        self._model = model.to(self._device)

    @torch.inference_mode()
    def __call__(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Return the scores of a query with n passages, float32 [n], each in 0 to 1."""
        scores = [np.empty(0, np.float32)]
        for part in batched([*passages], BATCH_SIZE):
            inputs = self._tokenizer(
                [query] * len(part), part, padding=True, truncation=True, max_length=self._length, return_tensors="pt"
            )
            logit_NL = self._model(**inputs.to(self._device)).logits.float()
            score_N = logit_NL.softmax(-1)[:, 1] if logit_NL.shape[1] == 2 else logit_NL[:, 0].sigmoid()
            scores.append(score_N.cpu().numpy())
        return np.concatenate(scores)
