"""BERT folders: configurations from a short name, strict loading, saving for `transformers`.

Code in a folder is never run. Tensors are matched against an allow-list, config.json builds transformers'
BertForMaskedLM, and pickled weights are read without executing anything.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, BertModel
from transformers.activations import ACT2FN
from transformers.models.bert.modeling_bert import BertPooler

from realmctl.errors import ConfigError, InputError, as_realmctl_error, one_line
from realmctl.models.bert.foreign_config import read_fields
from realmctl.models.bert.limits import check_kind, check_numbers, check_sizes, require_memory
from realmctl.models.weights import load_into, load_pickled, load_tensors, require_finite, save_tensors

SIZES = {"tiny": "L2-H128", "mini": "L4-H256", "small": "L4-H512", "medium": "L8-H512", "base": "L12-H768"}
_SPEC = re.compile(r"L(\d+)-H(\d+)(?:-A(\d+))?")
_IGNORED = re.compile(r".*position_ids|cls\.seq_relationship\..*")
_HEAD = "cls.predictions."
MAX_SPEC = 40
"""Characters of a size name."""


def scratch_config(
    spec: str,
    vocab_size: int,
    dropout: float = 0.1,
    *,
    hidden_act: str = "gelu",
    init_std: float = 0.02,
    positions: int = 512,
) -> BertConfig:
    """Return the configuration of a BERT from scratch: a size name, or `L<layers>-H<hidden>[-A<heads>]`.

    Heads default to hidden / 64, at least 2. The default activation is the exact GELU. On a CPU it is five times as fast
    as the tanh approximation `gelu_new`, which Google's weights were trained with.

    Raises:
        ConfigError: The size is unknown, or beyond `limits.SIZE_LIMITS`.
        ResourceError: The weights do not fit into the free memory.
    """
    match = _SPEC.fullmatch(SIZES.get(spec, spec)) if len(spec) <= MAX_SPEC else None
    layers, hidden, heads = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
    heads = heads or max(2, hidden // 64)
    if not layers or not hidden or hidden % heads:
        raise ConfigError(
            f"'{spec[:MAX_SPEC]}' is no BERT size (layers, hidden width). Use {', '.join(SIZES)}, or L<layers>-H<hidden>[-A<heads>] such as "
            "L2-H128-A4, where the number of heads divides the hidden size."
        )
    sizes = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads}
    try:
        check_sizes({**sizes, "intermediate_size": 4 * hidden, "vocab_size": vocab_size})
    except ValueError as error:
        raise ConfigError(f"The BERT size '{spec}' is too large: {error}. Use a smaller one.") from None
    config = BertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        hidden_act=hidden_act,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        max_position_embeddings=positions,
        initializer_range=init_std,
        pad_token_id=0,
        attn_implementation="sdpa",
    )
    require_memory(config, f"a BERT of size '{spec}'")
    return config


def read_config(folder: Path, kind: str = "bert") -> BertConfig:
    """Read config.json of a BERT folder, or of a folder of another `model_type` that describes a BERT, such as DPR's.

    Raises:
        InputError: It is missing, malformed, of another kind of model, has sizes beyond `limits.SIZE_LIMITS`, or asks for what is not
            computed (`limits.check_kind`).
        ResourceError: The weights of such a model do not fit into the free memory.
    """
    path = folder / "config.json"
    try:
        fields = read_fields(path)
    except (OSError, ValueError, RecursionError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"Cannot read {path}: {error}. A BERT folder holds config.json and the weights beside it."
        ) from error
    if (found := fields.get("model_type", kind)) != kind:
        raise InputError(
            f"{folder} holds a model of type '{str(found)[:40]}'. Only BERT models (model_type bert) can be used here; "
            "give another folder or hub id."
        )
    try:
        check_sizes(fields)
        check_kind(fields)
        config = BertConfig.from_dict(fields, attn_implementation="sdpa")
        check_sizes(config.to_dict())
        check_numbers(config)
        if config.hidden_act not in ACT2FN:
            raise ValueError(f"hidden_act is {str(config.hidden_act)[:40]!r}, which transformers does not know")
    except Exception as error:  # transformers raises many kinds for fields of a wrong type
        raise InputError(
            f"{path} does not describe a BERT that can be used: {one_line(error)}. Use another folder."
        ) from None
    require_memory(config, str(folder))
    return config


def load_masked_lm(folder: Path, dropout: float | None = None) -> tuple[BertForMaskedLM, bool]:
    """Load a BERT folder. Return the model, and whether the folder held a masked-language-model head.

    A folder without a head gets one with random weights. `dropout`, from 0 to below 1, replaces the rates of config.json.

    Takes the weights of BertModel, BertForMaskedLM or BertForPreTraining, as model.safetensors or
    pytorch_model.bin. A pooler is kept in `bert.pooler`, without gradient; a retriever may use it.
    Raises InputError that names a tensor which is missing, unknown or of another shape.
    """
    config = read_config(folder)
    if dropout is not None:
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout
    model = BertForMaskedLM(config)
    words = "bert.embeddings.word_embeddings.weight"
    tensors = {_name(name): tensor for name, tensor in _read(folder).items() if not _IGNORED.fullmatch(name)}
    if any(name.startswith("bert.pooler.") for name in tensors):
        model.bert.pooler = BertPooler(model.config).requires_grad_(False)
    require_finite(tensors, folder)  # first, because NaN differs from itself, and a tied decoder would look untied
    has_head = any(name.startswith(_HEAD) for name in tensors)
    if has_head:
        _tie(tensors, folder)
    else:
        tensors |= {name: tensor for name, tensor in model.state_dict().items() if name.startswith(_HEAD)}
        tensors[_HEAD + "decoder.weight"] = tensors.get(words, torch.empty(0))
    load_into(model, tensors, folder)
    return model.eval(), has_head


def save_masked_lm(model: BertForMaskedLM, folder: Path) -> None:
    """Write config.json and model.safetensors, which AutoModel and AutoModelForMaskedLM load."""
    save_bert(model, folder)


def save_bert(model: BertModel | BertForMaskedLM, folder: Path) -> None:
    """Write a BERT with or without a head: config.json and model.safetensors. Tied tensors are written once."""
    tied = {_HEAD + "decoder.weight", _HEAD + "decoder.bias"}
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in tied}
    save_tensors(tensors, folder / "model.safetensors")
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)


def load_bert(folder: Path, pooler: bool) -> BertModel:
    """Load a BertModel that `save_bert` wrote. Raises InputError that names a tensor which does not fit."""
    model = BertModel(read_config(folder), add_pooling_layer=pooler)
    load_into(model, load_tensors(folder / "model.safetensors"), folder)
    return model.eval()


def _read(folder: Path) -> dict[str, Tensor]:
    pickled = folder / "pytorch_model.bin"
    if pickled.exists() and not (folder / "model.safetensors").exists():
        return load_pickled(pickled)
    return load_tensors(folder / "model.safetensors")


def _name(name: str) -> str:
    """Translate a tensor's name from old TensorFlow exports and bare BertModels to BertForMaskedLM."""
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    return name if name.startswith(("bert.", "cls.")) else f"bert.{name}"


def _tie(tensors: dict[str, Tensor], folder: Path) -> None:
    """Tie the decoder to the embedding table and the head's bias. Raises InputError when the file holds other values.

    A file may hold each pair of tied tensors once, under either name.
    """
    words, bias = "bert.embeddings.word_embeddings.weight", _HEAD + "bias"
    for name, source in (("decoder.weight", words), ("decoder.bias", bias)):
        if source not in tensors and _HEAD + name in tensors:
            tensors[source] = tensors[_HEAD + name]
        if source not in tensors:
            continue  # load_into names it
        if not torch.equal(tensors.setdefault(_HEAD + name, tensors[source]), tensors[source]):
            raise InputError(
                f"The tensor '{_HEAD + name}' in {folder} differs from '{source}': an untied vocabulary "
                "decoder. Only BERT's tied decoder can be trained here; save the model with tied weights."
            )
