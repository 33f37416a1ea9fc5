"""A query tower in NumPy, in float32: BERT, pooling and what follows it, for one question.

Legend: L tokens, H hidden, A heads, D width of the embeddings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from realmctl.errors import InputError, as_realmctl_error
from realmctl.models.bert.config import BertConfig
from realmctl.models.retriever_settings import RetrieverSettings, read_settings

Floats = NDArray[np.float32]


class OtherTower(Exception):
    """The tower is none that is computed here."""


def erf(x: Floats) -> Floats:
    """The error function within 1.5e-7 (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26)."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    sum_ = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.asarray(np.sign(x) * (1 - sum_ * np.exp(-x * x)), np.float32)


def gelu(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1 + erf(x * np.float32(0.5**0.5))), np.float32)


def gelu_tanh(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (x + 0.044715 * x**3))), np.float32)


def relu(x: Floats) -> Floats:
    return np.maximum(x, 0)


def same(x: Floats) -> Floats:
    return x


ACTIVATIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "gelu": gelu,
    "gelu_python": gelu,
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_accurate", "gelu_pytorch_tanh"), gelu_tanh),
    "relu": relu,
    "tanh": np.tanh,
    "identity": same,
}


class QuickTower:
    """The query tower of a saved retriever.

    Raises:
        OtherTower: The encoder is no BERT of float32, or has an activation or a step of the head that is not computed here.
        InputError: A file is missing or damaged, or the tower is not the one that the settings describe.
    """

    def __init__(self, retriever: Path) -> None:
        self.settings = read_settings(retriever)
        folder = retriever / ("block" if self.settings.towers == "shared" else "query")
        self.config = _config(folder / "config.json")
        layout = self.settings.layout
        whole = layout.pools_prefixes or not layout.query_prefix.ids
        known = self.config.hidden_act in ACTIVATIONS and self.settings.pooling in ("mean", "cls", "pooler") and whole
        if not known or self.settings.query_pooling is not None:
            raise OtherTower
        bert, self.head = _tensors(folder / "model.safetensors"), _tensors(folder / "projection.safetensors")
        if self.settings.towers == "shared":
            _require_described(self.settings, bert, self.head, retriever)
        self.bert = bert
        self._steps = self.settings.head
        if self._steps is not None and any(not _known(step) for step in self._steps):
            raise OtherTower

    def embed(self, ids: NDArray[np.int64]) -> Floats:
        """Return the vector of one input with its special tokens, float32 [D]. Raises InputError for tensors that do not fit."""
        try:
            vector = self._project(self._pooled(self._states(ids)))
        except (KeyError, ValueError, IndexError) as error:
            raise InputError(
                f"the weights of the query tower do not fit its config.json ({error}). Make it again."
            ) from None
        if not np.isfinite(vector).all():
            raise InputError(
                "the query tower computes a number that is not finite. Train it again, or use another one."
            )
        return vector

    def _linear(self, name: str, state: Floats) -> Floats:
        return state @ self.bert[f"{name}.weight"].T + self.bert[f"{name}.bias"]

    def _norm(self, name: str, state: Floats) -> Floats:
        return _normed(state, self.bert[f"{name}.weight"], self.bert[f"{name}.bias"], self.config.layer_norm_eps)

    def _states(self, ids: NDArray[np.int64]) -> Floats:
        """States of the last layer, [L, H]."""
        first = "embeddings."
        state = self.bert[f"{first}word_embeddings.weight"][ids] + self.bert[f"{first}token_type_embeddings.weight"][0]
        state = self._norm(f"{first}LayerNorm", state + self.bert[f"{first}position_embeddings.weight"][: len(ids)])
        heads, activation = self.config.num_attention_heads, ACTIVATIONS[self.config.hidden_act]
        for number in range(self.config.num_hidden_layers):
            layer = f"encoder.layer.{number}."
            parts = (self._linear(f"{layer}attention.self.{name}", state) for name in ("query", "key", "value"))
            query, key, value = (part.reshape(len(ids), heads, -1).swapaxes(0, 1) for part in parts)
            weights = _softmax(query @ key.swapaxes(1, 2) / np.float32(query.shape[-1] ** 0.5))
            context = (weights @ value).swapaxes(0, 1).reshape(len(ids), -1)
            mixed = self._linear(f"{layer}attention.output.dense", context)
            state = self._norm(f"{layer}attention.output.LayerNorm", mixed + state)
            inner = activation(self._linear(f"{layer}intermediate.dense", state))
            state = self._norm(f"{layer}output.LayerNorm", self._linear(f"{layer}output.dense", inner) + state)
        return state

    def _pooled(self, state_LH: Floats) -> Floats:
        if self.settings.pooling == "mean":
            return np.asarray(state_LH.mean(0), np.float32)
        if self.settings.pooling == "cls":
            return np.asarray(state_LH[0], np.float32)
        return np.asarray(np.tanh(self._linear("pooler.dense", state_LH[0])), np.float32)

    def _project(self, pooled_H: Floats) -> Floats:
        head = self.head
        if self._steps is None:
            dense = pooled_H @ head["dense.weight"].T + head["dense.bias"]
            return _normed(dense, head["LayerNorm.weight"], head["LayerNorm.bias"], self.settings.norm_eps or 0.0)
        for number, step in enumerate(self._steps):
            if step["kind"] == "dense":
                pooled_H = pooled_H @ head[f"head.{number}.0.weight"].T
                if step["bias"]:
                    pooled_H = pooled_H + head[f"head.{number}.0.bias"]
                pooled_H = ACTIVATIONS[step["activation"]](pooled_H)
            elif step["kind"] == "layer-norm":
                pooled_H = _normed(pooled_H, head[f"head.{number}.weight"], head[f"head.{number}.bias"], 1e-5)
            elif step["kind"] == "truncate":
                pooled_H = pooled_H[: step["width"]]
            else:
                pooled_H = pooled_H / max(float(np.linalg.norm(pooled_H)), 1e-12)
        return np.asarray(pooled_H * np.sqrt(head["scale"]), np.float32)


def _known(step: Mapping[str, Any]) -> bool:
    return step["kind"] in ("layer-norm", "truncate", "normalize") or (
        step["kind"] == "dense" and step["activation"] in ACTIVATIONS
    )


def _config(path: Path) -> BertConfig:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if fields.get("model_type") != BertConfig.model_type:
            raise OtherTower
        return BertConfig.from_dict(fields)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"Cannot read {path}: {error}. Make the retriever again."
        ) from None


def _tensors(path: Path) -> Mapping[str, Floats]:
    try:
        tensors: dict[str, Any] = load_file(path)
    except (OSError, SafetensorError, KeyError, TypeError) as error:
        raise OtherTower from error  # the searcher says what is wrong
    if any(tensor.dtype != np.float32 for tensor in tensors.values()):
        raise OtherTower
    return tensors


def _require_described(
    settings: RetrieverSettings, bert: Mapping[str, Floats], head: Mapping[str, Floats], where: Path
) -> None:
    """Raise OtherTower unless the tensors are those that the retriever's settings name by their hash, as `hash_tensors` computes it."""
    names = {"dense": "projection", "LayerNorm": "norm"}
    tensors = {f"bert.{name}": tensor for name, tensor in bert.items()}
    for name, tensor in head.items():
        first, _, rest = name.partition(".")
        tensors[f"{names.get(first, first)}.{rest}" if settings.head is None else name] = tensor
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name}\0torch.float32\0{tensors[name].shape}\0".encode())
        digest.update(np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8).data)
    if digest.hexdigest() != settings.block_encoder:
        raise OtherTower  # the searcher says what is wrong


def _normed(state: Floats, weight: Floats, bias: Floats, eps: float) -> Floats:
    centred = state - state.mean(-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(eps))
    return np.asarray(centred / spread * weight + bias, np.float32)


def _softmax(scores: Floats) -> Floats:
    exps = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(exps / exps.sum(-1, keepdims=True), np.float32)
