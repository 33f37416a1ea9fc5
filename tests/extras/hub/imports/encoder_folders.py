"""Small encoder folders of every kind that can be imported, with weights that follow from their names alone.

`tests/parity/sentence_vectors.py` has sentence-transformers and transformers embed TEXTS with them, and writes the golden
vectors that the tests compare with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import BertModel

from realmctl.artifacts import Artifact
from realmctl.models.bert.files import save_bert, scratch_config
from realmctl.tokens.tokenizer import Tokenizer
from tests.extras.hub import realm_case as case
from tests.extras.hub import realm_checkpoints as published

TEXTS = ["the cat", "a dog. the x", "q", "Hello. The end. " * 9, "zz top caf\u00e9"]
TITLES = ["cats", "", "the band", "letters", "end."]
LENGTH = 24
QUERY_PROMPT, BLOCK_PROMPT = "ask the ", "cat. "
DPR_CLASSES = {"question_encoder": "DPRQuestionEncoder", "ctx_encoder": "DPRContextEncoder"}
Module = tuple[str, dict[str, Any], nn.Module | None]


def bert(seed: str = "", pooler: bool = False) -> BertModel:
    built = BertModel(published.bert_config(), add_pooling_layer=pooler).eval()
    case.fill(built, {"": seed} if seed else {})
    return built


def write_bert(folder: Path, tensors: Mapping[str, Tensor], **config: Any) -> Path:
    """A folder with config.json, model.safetensors and vocab.txt."""
    published.write(folder, tensors)
    fields = {**case.CONFIG, "model_type": "bert", "architectures": ["BertModel"], **config}
    (folder / "config.json").write_text(json.dumps(fields))
    return folder


def plain(folder: Path, architecture: str = "BertModel") -> Path:
    """A BERT with its pooler."""
    return write_bert(folder, bert(pooler=True).state_dict(), architectures=[architecture])


def dpr(folder: Path, side: str, projection: int = 0) -> Path:
    """One of DPR's encoders; the two have different weights."""
    tensors = {f"{side}.bert_model.{name}": tensor for name, tensor in bert(side).state_dict().items()}
    if projection:
        encode_proj = dense(32, projection)
        tensors |= {f"{side}.encode_proj.{name}": tensor for name, tensor in encode_proj.state_dict().items()}
    fields = {"model_type": "dpr", "projection_dim": projection, "architectures": [DPR_CLASSES[side]]}
    return write_bert(folder, tensors, **fields)


def dense(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias=bias)
    case.fill(layer, {"": f"dense.{inputs}.{outputs}."})
    return layer


def sentence_folder(folder: Path, pooling: Mapping[str, Any], *modules: Module, **settings: Any) -> Path:
    """A folder of sentence-transformers: a BERT, a pooling and further modules (class name, config.json, weights)."""
    write_bert(folder, bert().state_dict())
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": LENGTH, "do_lower_case": False})
    listed = [("Transformer", ""), ("Pooling", "1_Pooling")]
    write_json(folder / "1_Pooling" / "config.json", pooling)
    for number, (name, config, weights) in enumerate(modules, 2):
        listed.append((name, f"{number}_{name}"))
        write_json(folder / f"{number}_{name}" / "config.json", config)
        if weights is not None:
            state = {key: tensor.contiguous() for key, tensor in weights.state_dict().items()}
            names = {f"{'norm' if name == 'LayerNorm' else 'linear'}.{key}": tensor for key, tensor in state.items()}
            save_file(names, folder / f"{number}_{name}" / "model.safetensors")
    entries = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{name}"}
        for number, (name, path) in enumerate(listed)
    ]
    write_json(folder / "modules.json", entries)
    write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": "dot", **settings})
    return folder


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def old_pooling(mode: str) -> dict[str, Any]:
    modes = {f"pooling_mode_{name}": name == mode for name in ("cls_token", "mean_tokens", "max_tokens")}
    return {"word_embedding_dimension": 32, **modes}


def dense_module(inputs: int, outputs: int, activation: str, bias: bool = True) -> Module:
    config = {"in_features": inputs, "out_features": outputs, "bias": bias, "activation_function": activation}
    return "Dense", config, dense(inputs, outputs, bias)


def layer_norm(width: int) -> Module:
    norm = nn.LayerNorm(width)
    case.fill(norm, {"": f"norm.{width}."})
    return "LayerNorm", {"dimension": width}, norm


TANH, IDENTITY = "torch.nn.modules.activation.Tanh", "torch.nn.modules.linear.Identity"
NORMALIZE: Module = ("Normalize", {}, None)
SENTENCE_FOLDERS: dict[str, Callable[[Path], Path]] = {
    "mean-normalize": lambda folder: sentence_folder(folder, old_pooling("mean_tokens"), NORMALIZE),
    "cls-dense": lambda folder: sentence_folder(
        folder,
        old_pooling("cls_token"),
        dense_module(32, 16, TANH),
        dense_module(16, 8, IDENTITY, bias=False),
        NORMALIZE,
        prompts={"query": QUERY_PROMPT, "document": BLOCK_PROMPT},
    ),
    "mean-layer-norm": lambda folder: sentence_folder(
        folder,
        {"embedding_dimension": 32, "pooling_mode": "mean"},
        dense_module(32, 8, IDENTITY),
        layer_norm(8),
        prompts={"other": QUERY_PROMPT},
        default_prompt_name="other",
    ),
}


def folder_for(blocks: Artifact, folder: Path, seed: int = 0) -> Path:
    """A sentence-transformers folder with the vocabulary of given blocks: a dense layer and unit vectors."""
    words = Tokenizer.load(blocks.path)
    sentence_folder(folder, {"embedding_dimension": 16, "pooling_mode": "mean"}, dense_module(16, 8, TANH), NORMALIZE)
    torch.manual_seed(seed)
    save_bert(BertModel(scratch_config("L1-H16", len(words), init_std=0.5), add_pooling_layer=False), folder)
    (folder / "vocab.txt").unlink()
    words.save(folder)
    return folder
