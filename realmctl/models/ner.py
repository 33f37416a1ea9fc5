"""Named entities from a token-classification model in Hugging Face's layout.

The paper used BERT trained on CoNLL-2003. This file is not among `realmctl.spans.taggers` because it needs torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import torch
from transformers import AutoModelForTokenClassification

from realmctl.execution.batches import batched
from realmctl.models.foreign_model import open_foreign
from realmctl.models.precision import pick_device

NamedEntity = tuple[int, int, str]
"""First character, last character + 1, label."""


class EntityRecognizer:
    """Finds the named entities of single sentences. Entities consist of whole words.

    A word takes the label of its first wordpiece, as in the training of such models. Neighbouring words are joined by
    their BIO, IO or BILOU tags. Text beyond the model's longest input has no entities.
    """

    def __init__(self, folder: Path, *, batch_size: int = 64, device: str = "auto") -> None:
        """Load the model. Raises: see `open_foreign`."""
        self._tokenizer, model, self._max_length = open_foreign(
            folder, AutoModelForTokenClassification, "token-classification model", f"tagger hf:{folder}"
        )
        self._device, self._batch_size = pick_device(device), batch_size
        self._model = model.to(self._device)
        self._labels = [model.config.id2label[i] for i in range(model.config.num_labels)]

    def __call__(self, texts: Sequence[str]) -> list[list[NamedEntity]]:
        """Return the entities of each text. Texts of similar lengths share a batch."""
        found: list[list[NamedEntity]] = [[] for _ in texts]
        order = sorted((row for row, text in enumerate(texts) if text), key=lambda row: len(texts[row]))
        for rows in batched(order, self._batch_size):
            for row, entities in zip(rows, self._find([texts[row] for row in rows]), strict=True):
                found[row] = entities
        return found

    @torch.inference_mode()
    def _find(self, texts: list[str]) -> Iterator[list[NamedEntity]]:
        inputs = self._tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self._max_length,
            return_offsets_mapping=True,
            return_tensors="pt",
        )
        offsets = inputs.pop("offset_mapping").tolist()
        best = self._model(**inputs.to(self._device)).logits.argmax(-1).tolist()
        for row in range(len(texts)):
            tags = [self._labels[label] for label in best[row]]
            yield join_tags(_words(inputs.word_ids(row), tags, offsets[row]))


def _words(word_ids: list[int | None], tags: list[str], offsets: list[list[int]]) -> Iterator[NamedEntity]:
    """Yield (start, end, tag) of each word, with the tag of its first wordpiece. Special tokens are left out."""
    pieces = zip(word_ids, tags, offsets, strict=True)
    for word, group in groupby(pieces, key=lambda piece: piece[0]):
        if word is not None:
            _, tag, (start, end) = next(group)
            for _, _, (_, piece_end) in group:
                end = piece_end
            yield start, end, tag


def join_tags(words: Iterable[NamedEntity]) -> list[NamedEntity]:
    """Join tagged words, left to right, into entities.

    B-, S- and U- open an entity. I-, E- and L-, and tags without a prefix, continue an open entity of the same type, or
    open one otherwise, as conlleval does. E-, L-, S-, U- and O close the open entity.
    """
    entities: list[NamedEntity] = []
    open_type = None
    for start, end, tag in words:
        prefix, kind = (tag[0], tag[2:]) if tag[1:2] == "-" else ("I", tag)
        if tag == "O":
            open_type = None
            continue
        if kind == open_type and prefix in "IEL":
            entities[-1] = (entities[-1][0], end, kind)
        else:
            entities.append((start, end, kind))
        open_type = None if prefix in "ELSU" else kind
    return entities
