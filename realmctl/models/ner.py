"""Named entities from a token-classification model in Hugging Face's layout.

The paper used BERT trained on CoNLL-2003. This file is not among `realmctl.spans.taggers` because it needs torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from realmctl.errors import InputError, as_realmctl_error, one_line
from realmctl.models.bert.foreign_config import read_config, require_memory
from realmctl.models.families.known import FAMILIES, family
from realmctl.models.precision import pick_device
from realmctl.models.weights import require_finite

AFTER_PADDING = ("xlm-roberta-xl", "roberta-prelayernorm", "data2vec-text", "longformer", "ibert", "xmod", "esm")
"""Types of encoders, beside those of the families, whose positions begin behind that of padding."""
NamedEntity = tuple[int, int, str]
"""First character, last character + 1, label."""


class EntityRecognizer:
    """Finds the named entities of single sentences. Entities consist of whole words.

    A word takes the label of its first wordpiece, as in the training of such models. Neighbouring words are joined by
    their BIO, IO or BILOU tags. Text beyond the model's longest input has no entities.
    """

    def __init__(self, folder: Path, *, batch_size: int = 64, device: str = "auto") -> None:
        """Load the model.

        Raises:
            InputError: `folder` has no token-classification model with a fast tokenizer, its weights are not finite, or the model
                brings its own code.
            ResourceError: The weights do not fit into the free memory.
        """
        config = read_config(folder, "token-classification model")
        require_memory(folder, AutoModelForTokenClassification, config, "Name a token-classification model.")
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
            model = AutoModelForTokenClassification.from_pretrained(
                str(folder), config=config, use_safetensors=True, trust_remote_code=False
            )
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise as_realmctl_error(error, folder) or InputError(
                f"tagger hf:{folder}: no token-classification model can be loaded from there ({one_line(error)}). "
                "Name a folder or hub id with config.json, model.safetensors and tokenizer files."
            ) from None
        if not self._tokenizer.is_fast:
            raise InputError(
                f"tagger hf:{folder}: its tokenizer does not give character offsets. Use a model with a tokenizer.json."
            )
        if self._tokenizer.pad_token is None:
            raise InputError(
                f"tagger hf:{folder}: its tokenizer has no padding token. Name one as pad_token in tokenizer_config.json."
            )
        require_finite(model.state_dict(), folder)
        self._device, self._batch_size = pick_device(device), batch_size
        self._model = model.float().to(self._device).eval()
        self._labels = [model.config.id2label[i] for i in range(model.config.num_labels)]
        self._max_length = min(self._tokenizer.model_max_length, _positions(model.config))

    def __call__(self, texts: Sequence[str]) -> list[list[NamedEntity]]:
        """Return the entities of each text. Texts of similar lengths share a batch."""
        found: list[list[NamedEntity]] = [[] for _ in texts]
        order = sorted((row for row, text in enumerate(texts) if text), key=lambda row: len(texts[row]))
        for at in range(0, len(order), self._batch_size):
            rows = order[at : at + self._batch_size]
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


def _positions(config: Any) -> int:
    """Return the most tokens of an input. The positions of some encoders begin behind that of padding, such as RoBERTa's."""
    if config.model_type in FAMILIES.names():
        return family(config.model_type).positions(config)
    return int(config.max_position_embeddings) - (config.pad_token_id + 1 if config.model_type in AFTER_PADDING else 0)


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
