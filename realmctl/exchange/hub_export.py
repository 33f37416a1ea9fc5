"""`realmctl export`: write an artifact as a folder that other libraries load.

The folder holds a BERT for transformers' AutoModel. For a retriever it is also a sentence-transformers model whose `encode`
gives our embeddings: pooling, projection, layer norm (whose weight holds the scale). For an encoder of `condenser-init` the
folder also holds the head, with the tensor names of the public Condenser code, and encoder.json, which holds the pooling.

sentence-transformers' LayerNorm has an epsilon of 1e-5, ours of 1e-12. The difference would change nearly constant
projections. A layer norm with epsilon 0 ignores the scale of its input. So the projection is written larger by a power of
two, which rounds nothing, and 1e-5 becomes negligible. For a larger epsilon (`ict-init --projection-norm-eps`) the
projection is scaled so that both epsilons have the same effect.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from realmctl.artifacts import Artifact, open_artifact, verify
from realmctl.artifacts.description import ENCODER
from realmctl.artifacts.manifest import is_artifact
from realmctl.errors import ConfigError
from realmctl.exchange.exports.model_card import write_card
from realmctl.nn.condenser import HEAD_FILE
from realmctl.nn.retriever import Retriever, Tower
from realmctl.nn.retriever_settings import NORM_EPS
from realmctl.nn.weights import save_tensors
from realmctl.stage import resolve

TowerSide = Literal["query", "block"]
KINDS = ("retriever", "encoder", "reader", "span-reader")
BERT_FILES = ("config.json", "model.safetensors")
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json")
SCALE, THEIR_EPS = 4096.0, 1e-5
TANH, IDENTITY = "torch.nn.modules.activation.Tanh", "torch.nn.modules.linear.Identity"
MODULES = "sentence_transformers.models."


def export(path: Path, folder: Path, side: TowerSide | None = None, name: str | None = None) -> dict[str, Any]:
    """Write the artifact at `path`, or a model's retriever, to the new folder `folder`. Return a summary.

    name: hub id that the model card names instead of the folder.

    Raises ConfigError for a folder that exists, and for a tower that the artifact does not have.
    """
    artifact = resolve(open_artifact(path), KINDS)
    _require_new(folder)
    verify(artifact)
    retriever = Retriever.load(artifact.path) if artifact.kind == "retriever" else None
    chosen = _side(retriever, side, artifact)
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent))
    try:
        _write(artifact, retriever, chosen, partial)
        write_card(artifact, partial, name or str(folder), chosen)
        partial.chmod(0o755)
        if folder.exists():
            folder.rmdir()
        partial.rename(folder.absolute())
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    libraries = ["transformers", "sentence-transformers"] if retriever else ["transformers"]
    return {
        "path": str(folder),
        "from": str(artifact.path),
        "kind": artifact.kind,
        "side": chosen,
        "loads_in": libraries,
    }


def _require_new(folder: Path) -> None:
    if not folder.name or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise ConfigError(f"{folder} exists already. Export to a new folder.")
    inside = next((one for one in folder.absolute().parents if is_artifact(one)), None)
    if inside:
        raise ConfigError(f"{folder} lies in an artifact, {inside}, which never changes. Export to another folder.")


def _side(retriever: Retriever | None, side: TowerSide | None, artifact: Artifact) -> TowerSide | None:
    if retriever is None:
        if side:
            raise ConfigError(
                f"--side {side}: {artifact} is a single BERT and has no sides (query, block). Leave --side out."
            )
        return None
    if retriever.towers == "separate" and side is None:
        raise ConfigError(f"{artifact} has a query tower and a block tower. Say which: --side query or --side block.")
    if retriever.towers == "query-only" and side == "block":
        raise ConfigError(f"{artifact} was fine-tuned and has a query side alone (no block tower). Leave --side out.")
    return side or ("query" if retriever.towers == "query-only" else "block")


def _write(artifact: Artifact, retriever: Retriever | None, side: TowerSide | None, folder: Path) -> None:
    if retriever is None:
        of_condenser = [name for name in (HEAD_FILE, ENCODER) if artifact.has(name)]
        _copy(artifact, [*BERT_FILES, *TOKENIZER_FILES, *of_condenser], "", folder)
        return
    below = "query/" if side == "query" and retriever.towers != "shared" else "block/"
    _copy(artifact, list(BERT_FILES), below, folder)
    _copy(artifact, list(TOKENIZER_FILES), "tokenizer/", folder)
    tower = retriever.query_tower if side == "query" or retriever.block_tower is None else retriever.block_tower
    length = retriever.query_length if side == "query" and retriever.towers != "shared" else retriever.block_length
    _write_modules(tower, length, folder)


def _copy(artifact: Artifact, names: list[str], below: str, folder: Path) -> None:
    for name in names:
        shutil.copyfile(artifact.file(below + name), folder / name)


def _write_modules(tower: Tower, length: int, folder: Path) -> None:
    """Write sentence-transformers' modules.json and the modules after the BERT."""
    hidden, pooler = tower.bert.config.hidden_size, tower.bert.pooler
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": length, "do_lower_case": False})
    mean = tower.pooling == "mean"
    pooling = {"word_embedding_dimension": hidden, "pooling_mode_cls_token": not mean, "pooling_mode_mean_tokens": mean}
    modules = [("Transformer", ""), ("Pooling", _module(folder, 1, "Pooling", pooling, {}))]
    if pooler is not None:
        modules.append(("Dense", _dense(folder, len(modules), pooler.dense.weight, pooler.dense.bias, TANH)))
    scale = SCALE if tower.norm.eps <= NORM_EPS else math.sqrt(THEIR_EPS / tower.norm.eps)
    weight, bias = tower.projection.weight * scale, tower.projection.bias * scale
    modules.append(("Dense", _dense(folder, len(modules), weight, bias, IDENTITY)))
    norm = {"norm.weight": tower.norm.weight, "norm.bias": tower.norm.bias}
    dimension = {"dimension": tower.projection.out_features}
    modules.append(("LayerNorm", _module(folder, len(modules), "LayerNorm", dimension, norm)))
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": MODULES + name}
        for number, (name, path) in enumerate(modules)
    ]
    _write_json(folder / "modules.json", listed)
    _write_json(folder / "config_sentence_transformers.json", {"prompts": {}, "similarity_fn_name": "dot"})


def _dense(folder: Path, number: int, weight: Tensor, bias: Tensor, activation: str) -> str:
    sizes = {"in_features": weight.shape[1], "out_features": weight.shape[0]}
    config = {**sizes, "bias": True, "activation_function": activation}
    return _module(folder, number, "Dense", config, {"linear.weight": weight, "linear.bias": bias})


def _module(folder: Path, number: int, name: str, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> str:
    path = folder / f"{number}_{name}"
    path.mkdir()
    _write_json(path / "config.json", config)
    if tensors:
        with torch.no_grad():
            save_tensors(tensors, path / "model.safetensors")
    return path.name


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
