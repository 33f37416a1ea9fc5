"""Open a REALM checkpoint that transformers wrote: config.json, and weights as safetensors or plain pickled tensors.

The names of the tensors determine the kind of model. Tensors are memory-mapped: an index of seven gigabytes costs no
memory until its rows are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from realmctl.errors import InputError
from realmctl.imports.model_folder import read_json
from realmctl.models.families.known import known_types
from realmctl.models.weight_files import load_weights
from realmctl.pipeline.sources import HUB_FILES as ENCODER_FILES

CheckpointKind = Literal["embedder", "scorer", "encoder", "reader", "openqa"]
BLOCK_EMBEDDINGS = "block_emb"
HUB_FILES = (*ENCODER_FILES, "*/pytorch_model.bin", "block_records.npy")


@dataclass(frozen=True)
class Checkpoint:
    """An open checkpoint. `config` holds the fields of config.json, `tensors` all tensors by transformers' names."""

    folder: Path
    files: tuple[Path, ...]
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    kind: CheckpointKind


def open_checkpoint(folder: Path) -> Checkpoint:
    """Open the checkpoint in a folder.

    Raises InputError for a file that is missing, damaged or holds more than plain weights, and for another kind of model.
    """
    config = read_json(folder / "config.json")
    if config.get("model_type", "realm") != "realm":
        raise InputError(
            f"{folder} holds a model of type '{str(config['model_type'])[:40]}'. {known_types(str(config['model_type'])[:40])} Import "
            "takes REALM checkpoints, and as retrievers folders of sentence-transformers, Contriever, DPR and plain encoders."
        )
    weights, tensors = load_weights(folder)
    return Checkpoint(folder, (folder / "config.json", *weights), config, tensors, _kind(tensors, folder))


def _kind(tensors: Mapping[str, Tensor], folder: Path) -> CheckpointKind:
    def has(*beginnings: str) -> bool:
        return any(name.startswith(beginnings) for name in tensors)

    if has(BLOCK_EMBEDDINGS, "reader."):
        return "openqa"
    if has("embedder.", "query_embedder."):
        return "scorer"
    if has("qa_outputs."):
        return "reader"
    if has("cls.dense.", "cls.LayerNorm."):
        return "embedder"
    if has("realm.") and has("cls.predictions."):
        return "encoder"
    raise InputError(
        f"{folder} is not one of transformers' REALM models (embedder, scorer, knowledge-augmented "
        f"encoder, reader, open "
        f"QA): it holds {len(tensors)} tensors such as '{next(iter(sorted(tensors)), 'none')}'."
    )
