"""Write sentence-transformers' modules.json and the modules after the BERT, so that `encode` gives our embeddings.

For a retriever made here these are pooling, projection, layer norm (whose weight holds the scale). sentence-transformers'
LayerNorm has an epsilon of 1e-5, ours of 1e-12. The difference would change nearly constant projections. A layer norm with
epsilon 0 ignores the scale of its input. So the projection is written larger by a power of two, which rounds nothing, and
1e-5 becomes negligible. For a larger epsilon (`ict-init --projection-norm-eps`) the projection is scaled so that both
epsilons have the same effect.

For an imported retriever they are pooling and the steps of its head. A scale is a last Dense module with a diagonal matrix.

`fold` writes modules that more servers know: linear layers in a row become one, and a last layer norm with one gain and no
bias becomes a linear layer and Normalize. Scores are then ours but for one factor, so rankings are the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from realmctl.errors import ConfigError
from realmctl.models.families.known import family_of
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
    "silu": "torch.nn.modules.activation.SiLU",
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
}
MODULES = "sentence_transformers.models."
Module = tuple[str, dict[str, Any], dict[str, Tensor]]
"""Class name, config.json and tensors of a module."""


Projection = Literal["exact", "fold", "none"]
SERVERS = ("sentence-transformers", "text-embeddings-inference", "servers that pool and do no more")


def served_by(modules: Sequence[str]) -> list[str]:
    """Return the servers that give these vectors, by how they read modules.json, whose modules these are after pooling.

    text-embeddings-inference (backends/src/lib.rs) reads no list with a module other than Transformer, Pooling, Dense and
    Normalize, applies the Dense modules one after another, and normalises last, on request. Others skip Dense.
    """
    last = len(modules) - 1
    chain = all(name == "Dense" or (name == "Normalize" and number == last) for number, name in enumerate(modules))
    alone = not set(modules) - {"Normalize"}
    return [server for server, serves in zip(SERVERS, (True, chain, alone), strict=True) if serves]


def write_modules(
    tower: PooledBert, length: int, layout: InputLayout, folder: Path, projection: Projection = "exact"
) -> list[str]:
    """Write the modules of a tower, which reads inputs of `length` tokens, into the folder of its BERT.

    Returns the names of the modules after pooling. Raises ConfigError if `projection` cannot be had of this tower.
    """
    modes = ["cls"] if tower.pooling == "pooler" else tower.pooling.split("+")
    pooling: dict[str, Any] = {"word_embedding_dimension": tower.bert.config.hidden_size}
    if {*modes} <= {"cls", "mean"}:  # as versions before 5.7 read it too
        pooling |= {"pooling_mode_cls_token": "cls" in modes, "pooling_mode_mean_tokens": "mean" in modes}
    else:
        pooling["pooling_mode"] = modes
    if not layout.pools_prefixes:
        pooling["include_prompt"] = False
    head = list[Module]()
    if tower.pooling == "pooler":
        pooler = tower.bert.pooler
        head.append(_dense(pooler.dense.weight, pooler.dense.bias, "tanh"))
    head += _projection(tower) if isinstance(tower, Tower) else _head(tower) if isinstance(tower, SentenceTower) else ()
    if projection != "exact":
        head = folded(head)
    if projection == "none" and {name for name, _, _ in head} - {"Normalize"}:
        raise ConfigError(
            f"--projection none: {' and '.join(name for name, _, _ in head)} follow the pooling, and their weights would be lost. Use "
            "--projection fold, or train with --projection-head none."
        )
    framed = family_of(tower.bert).framed
    modules: list[Module] = [*([("Pooling", pooling, {})] if framed else []), *head]
    if framed:
        _write_json(folder / "sentence_bert_config.json", {"max_seq_length": length, "do_lower_case": False})
    paths = [
        ("Transformer" if framed else "StaticEmbedding", ""),
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
    return [name for name, _, _ in head]


@torch.no_grad()
def folded(head: Sequence[Module]) -> list[Module]:
    """Return the fewest modules with the same scores but for one factor: see the top of this file.

    Raises ConfigError for a layer norm that no linear layer can stand for.
    """
    modules = list[Module]()
    for number, (name, config, tensors) in enumerate(head):
        linear = name == "Dense" and config["activation_function"] == CLASSES["identity"]
        if name == "LayerNorm":
            gain, bias = tensors["norm.weight"], tensors["norm.bias"]
            if number < len(head) - 1 or bias.abs().max() > 0 or not torch.allclose(gain, gain[:1].expand_as(gain)):
                raise ConfigError(
                    "--projection fold: the layer norm at the end has learnt a gain for each dimension, and no server but "
                    "sentence-transformers applies it. Train with --projection-head plain or none, or leave --projection out."
                )
            width = len(gain)
            centred = torch.eye(width) - torch.full((width, width), 1 / width)
            _append_linear(modules, centred, torch.zeros(width))
            modules.append(("Normalize", {}, {}))
        elif linear and number == len(head) - 1 and _is_multiple_of_identity(tensors):
            continue  # a scale
        elif linear:
            _append_linear(modules, tensors["linear.weight"], tensors.get("linear.bias"))
        else:
            modules.append((name, config, tensors))
    return modules


def _append_linear(modules: list[Module], weight: Tensor, bias: Tensor | None) -> None:
    """Append a linear layer, or put it into the linear layer before it."""
    if modules and modules[-1][0] == "Dense" and modules[-1][1]["activation_function"] == CLASSES["identity"]:
        _, _, before = modules.pop()
        inner = before.get("linear.bias")
        moved = None if inner is None else weight @ inner
        bias = moved if bias is None else bias if moved is None else bias + moved
        weight = weight @ before["linear.weight"]
    modules.append(_dense(weight, bias, "identity"))


def _is_multiple_of_identity(tensors: Mapping[str, Tensor]) -> bool:
    weight = tensors["linear.weight"]
    return (
        "linear.bias" not in tensors
        and weight.shape[0] == weight.shape[1]
        and torch.equal(weight, weight[0, 0] * torch.eye(len(weight)))
    )


def _projection(tower: Tower) -> Iterator[Module]:
    scale = SCALE if tower.norm.eps <= NORM_EPS else math.sqrt(THEIR_EPS / tower.norm.eps)
    yield _dense(tower.projection.weight * scale, tower.projection.bias * scale, "identity")
    yield _layer_norm(tower.norm)


def _head(tower: SentenceTower) -> Iterator[Module]:
    widths = [tower.pooled_width, *(step.width for step in tower.steps)]
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
