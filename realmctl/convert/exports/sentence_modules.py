"""Write sentence-transformers' modules.json and the modules after the BERT, so that `encode` gives our embeddings.

For a retriever made here these are pooling, projection, layer norm (whose weight holds the scale). sentence-transformers'
LayerNorm has an epsilon of 1e-5, ours of 1e-12. The difference would change nearly constant projections. A layer norm with
epsilon 0 ignores the scale of its input. So the projection is written larger by a power of two, which rounds nothing, and
1e-5 becomes negligible. For a larger epsilon (`ict-init --projection-norm-eps`) the projection is scaled so that both
epsilons have the same effect.

For an imported retriever they are pooling and the steps of its head. A scale is a last Dense module with a diagonal matrix.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from realmctl.models.retriever import Tower
from realmctl.models.retriever_settings import NORM_EPS
from realmctl.models.towers.head_steps import Activation
from realmctl.models.towers.layout import InputLayout
from realmctl.models.towers.pooled_bert import PooledBert
from realmctl.models.towers.sentence_tower import SentenceTower
from realmctl.models.weights import save_tensors

SCALE, THEIR_EPS = 4096.0, 1e-5
CLASSES: Mapping[Activation, str] = {
    "identity": "torch.nn.modules.linear.Identity",
    "tanh": "torch.nn.modules.activation.Tanh",
    "relu": "torch.nn.modules.activation.ReLU",
    "gelu": "torch.nn.modules.activation.GELU",
}
MODULES = "sentence_transformers.models."
Module = tuple[str, dict[str, Any], dict[str, Tensor]]
"""Class name, config.json and tensors of a module."""


def write_modules(tower: PooledBert, length: int, layout: InputLayout, folder: Path) -> None:
    """Write the modules of a tower, which reads inputs of `length` tokens, into the folder of its BERT."""
    hidden, mean = tower.bert.config.hidden_size, tower.pooling == "mean"
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": length, "do_lower_case": False})
    pooling = {"word_embedding_dimension": hidden, "pooling_mode_cls_token": not mean, "pooling_mode_mean_tokens": mean}
    modules: list[Module] = [("Pooling", pooling, {})]
    if tower.pooling == "pooler":
        pooler = tower.bert.pooler
        modules.append(_dense(pooler.dense.weight, pooler.dense.bias, "tanh"))
    modules += (
        _projection(tower) if isinstance(tower, Tower) else _head(tower) if isinstance(tower, SentenceTower) else ()
    )
    paths = [
        ("Transformer", ""),
        *((module[0], _write_module(folder, n, *module)) for n, module in enumerate(modules, 1)),
    ]
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": MODULES + name}
        for number, (name, path) in enumerate(paths)
    ]
    _write_json(folder / "modules.json", listed)
    texts = {"query": layout.query_prefix.text, "document": layout.block_prefix.text}
    prompts = texts if any(texts.values()) else {}
    _write_json(folder / "config_sentence_transformers.json", {"prompts": prompts, "similarity_fn_name": "dot"})


def _projection(tower: Tower) -> Iterator[Module]:
    scale = SCALE if tower.norm.eps <= NORM_EPS else math.sqrt(THEIR_EPS / tower.norm.eps)
    yield _dense(tower.projection.weight * scale, tower.projection.bias * scale, "identity")
    yield _layer_norm(tower.norm)


def _head(tower: SentenceTower) -> Iterator[Module]:
    widths = [int(tower.bert.config.hidden_size), *(step.width for step in tower.steps)]
    for step, module, width in zip(tower.steps, tower.head, widths, strict=False):
        if step.kind == "normalize":
            yield "Normalize", {}, {}
        elif step.kind == "truncate":
            yield _dense(torch.eye(step.width, width), None, "identity")
        elif step.kind == "layer-norm":
            assert isinstance(module, nn.LayerNorm)
            yield _layer_norm(module)
        else:
            assert isinstance(module, nn.Sequential) and isinstance(module[0], nn.Linear)
            yield _dense(module[0].weight, module[0].bias if step.bias else None, step.activation)
    if float(tower.scale) != 1:
        yield _dense(torch.eye(tower.width) * tower.scale.sqrt(), None, "identity")


def _layer_norm(norm: nn.LayerNorm) -> Module:
    tensors: dict[str, Tensor] = {"norm.weight": norm.weight, "norm.bias": norm.bias}
    return "LayerNorm", {"dimension": norm.normalized_shape[0]}, tensors


def _dense(weight: Tensor, bias: Tensor | None, activation: Activation) -> Module:
    sizes = {"in_features": weight.shape[1], "out_features": weight.shape[0]}
    config = {**sizes, "bias": bias is not None, "activation_function": CLASSES[activation]}
    tensors = {"linear.weight": weight, **({} if bias is None else {"linear.bias": bias})}
    return "Dense", config, tensors


def _write_module(
    folder: Path, number: int, name: str, config: dict[str, object], tensors: Mapping[str, Tensor]
) -> str:
    path = folder / f"{number}_{name}"
    path.mkdir()
    _write_json(path / "config.json", config)
    if tensors:
        with torch.no_grad():
            save_tensors(tensors, path / "model.safetensors")
    return path.name


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
