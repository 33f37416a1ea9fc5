"""Folders of encoders: configurations from a short name, strict loading, saving for `transformers`.

Code in a folder is never run. `model_type` is matched against the families that are known, tensors against an allow-list, config.json
builds the family's masked language model, and pickled weights are read without executing anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from realmctl.errors import ConfigError, InputError, as_realmctl_error, one_line
from realmctl.models.bert.activations import ACTIVATIONS
from realmctl.models.bert.config import BertConfig
from realmctl.models.bert.foreign_config import read_fields
from realmctl.models.bert.limits import check_kind, check_numbers, check_sizes, require_memory, weights_of
from realmctl.models.bert.modules import Encoder
from realmctl.models.families.family import Family
from realmctl.models.families.known import FAMILIES, family, family_of, known_types
from realmctl.models.weight_files import load_weights
from realmctl.models.weights import WithoutDraws, load_into, load_tensors, require_finite, save_tensors

SIZES = {"tiny": "L2-H128", "mini": "L4-H256", "small": "L4-H512", "medium": "L8-H512", "base": "L12-H768"}
_SPEC = re.compile(r"L(\d+)-H(\d+)(?:-A(\d+))?")
IGNORED = re.compile(r".*position_ids|cls\.seq_relationship\..*|.*inv_freq")
"""Tensors that older versions of transformers wrote and that hold nothing to learn, and the head of BERT's other task."""
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
    pad: int = 0,
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
        pad_token_id=pad,
    )
    require_memory(weights_of(config), f"a BERT of size '{spec}'")
    return config


def read_config(folder: Path, kind: str | None = None) -> Any:
    """Read config.json of an encoder's folder, or of a folder of another `model_type` that describes a BERT, such as DPR's.

    Args:
        folder: Folder with config.json.
        kind: The `model_type` of a folder that describes a BERT; None for the folder of any known family.

    Raises:
        InputError: It is missing, malformed, of another kind of model, has sizes beyond `limits.SIZE_LIMITS`, or asks for what is not
            computed (`limits.check_kind`, `Family.check`).
        ResourceError: The weights of such a model do not fit into the free memory.
    """
    path = folder / "config.json"
    try:
        fields = read_fields(path)
    except (OSError, ValueError, RecursionError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"Cannot read {path}: {error}. The folder of an encoder holds config.json and the weights beside it."
        ) from error
    found = fields.get("model_type", kind or "bert")
    if found not in ([kind] if kind else FAMILIES.names()):
        raise InputError(
            f"{folder} holds a model of type '{str(found)[:40]}'. {known_types(str(found)[:40])} Give another folder or hub id."
        )
    known = family("bert" if kind else found)
    try:
        check_sizes(fields)
        check_kind(fields)
        config = known.config_of(fields)
        check_sizes(config.to_dict())
        check_numbers(config)
        known.check(config)
        if known.activation and (activation := getattr(config, known.activation)) not in ACTIVATIONS:
            names = ", ".join(ACTIVATIONS)
            raise ValueError(f"{known.activation} is {str(activation)[:40]!r}, and what can be computed is {names}")
        weights = known.weights(config)
    except Exception as error:  # classes of transformers raise many kinds for fields of a wrong type
        raise InputError(
            f"{path} does not describe a {found} encoder that can be used: {one_line(error)}. Use another folder."
        ) from None
    require_memory(weights, folder)
    return config


def load_masked_lm(folder: Path, dropout: float | None = None) -> tuple[Encoder, bool]:
    """Load the folder of an encoder. Return its masked language model, and whether the folder held a head for it.

    A folder without a head gets one with random weights. `dropout`, from 0 to below 1, replaces the rates of config.json.

    Takes the weights of transformers' base model, masked language model or BertForPreTraining, in the files that
    `load_weights` reads. A pooler is kept in `base_model.pooler`, without gradient; a retriever may use it.
    Raises InputError that names a tensor which is missing, unknown or of another shape.
    """
    config = read_config(folder)
    known = family(config.model_type)
    if dropout is not None:
        for name in known.rates:
            setattr(config, name, dropout)
    read = {name: tensor for name, tensor in load_weights(folder)[1].items() if not IGNORED.fullmatch(name)}
    has_head = any(name.startswith(known.head) for name in read)
    with WithoutDraws() if has_head else nullcontext():
        model = known.masked_lm(config)
    tensors = named_as(model, read)
    prefix = model.base_model_prefix
    if known.has_pooler and any(name.startswith(f"{prefix}.pooler.") for name in tensors):
        model.base_model.pooler = known.new_pooler(config).requires_grad_(False)
    require_finite(tensors, folder)  # first, because NaN differs from itself, and a tied decoder would look untied
    if has_head:
        _tie(known, tensors, folder)
    else:
        tensors |= {name: tensor for name, tensor in model.state_dict().items() if name.startswith(known.head)}
        for name, source in known.tied.items():
            if not source.startswith(known.head):
                tensors[name] = tensors.get(source, torch.empty(0))
    load_into(model, tensors, folder)
    return model.eval(), has_head


def save_masked_lm(model: Encoder, folder: Path) -> None:
    """Write config.json and model.safetensors, which AutoModel and AutoModelForMaskedLM load."""
    save_bert(model, folder)


def save_bert(model: Encoder, folder: Path) -> None:
    """Write an encoder with or without a head: config.json and model.safetensors. Tied tensors are written once."""
    tied = family_of(model).tied
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in tied}
    save_tensors(tensors, folder / "model.safetensors")
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)


def load_bert(folder: Path, pooler: bool) -> Encoder:
    """Load a base model that `save_bert` wrote. Raises InputError that names a tensor which does not fit."""
    config = read_config(folder)
    known, tensors = family(config.model_type), load_tensors(folder / "model.safetensors")
    with WithoutDraws():
        model = known.new_base(config, pooler)
    twice = {name: tensors[source] for name, source in known.tied.items() if source in tensors}
    load_into(
        model, {**tensors, **{name: tensor for name, tensor in twice.items() if name in model.state_dict()}}, folder
    )
    return model.eval()


def named_as(masked_lm: Encoder, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors by their names in a masked language model: those of a base model and of old TensorFlow exports are translated."""
    inside = (f"{masked_lm.base_model_prefix}.", *family_of(masked_lm).head, "cls.")
    found = {}
    for old, tensor in tensors.items():
        name = old.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        found[name if name.startswith(inside) else f"{masked_lm.base_model_prefix}.{name}"] = tensor
    return found


def _tie(known: Family, tensors: dict[str, Tensor], folder: Path) -> None:
    """Tie the decoder to the embedding table and the head's bias. Raises InputError when the file holds other values.

    A file may hold each pair of tied tensors once, under either name.
    """
    for name, source in known.tied.items():
        if source not in tensors and name in tensors:
            tensors[source] = tensors[name]
        if source not in tensors:
            continue  # load_into names it
        if not torch.equal(tensors.setdefault(name, tensors[source]), tensors[source]):
            raise InputError(
                f"The tensor '{name}' in {folder} differs from '{source}': an untied vocabulary "
                "decoder. Only a tied decoder can be trained here; save the model with tied weights."
            )
