"""The BERT of an encoder folder, and DPR's: strict loading into transformers' BertModel.

Every tensor is used, or known to be unused (the masked-language-model head, position numbers), or raises an error that
names it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from realmctl.convert.imports.checkpoint import load_weights
from realmctl.errors import InputError
from realmctl.models.bert.files import read_config
from realmctl.models.retriever_settings import Pooling
from realmctl.models.weights import load_into

UNUSED = re.compile(r"cls\..*|.*position_ids")
DPR_SIDES = ("question_encoder", "ctx_encoder")
DPR_PROJECTION = "encode_proj."


def load_bert_encoder(folder: Path, pooling: Pooling) -> BertModel:
    """Load the BERT of a folder, with its pooler if `pooling` needs it. Raises InputError for what does not fit."""
    tensors = {name.removeprefix("bert."): tensor for name, tensor in load_weights(folder)[1].items()}
    return _filled(read_config(folder), tensors, folder, pooling)


@dataclass(frozen=True)
class DprEncoder:
    """One encoder of DPR. side: `question_encoder` or `ctx_encoder`. projection: no tensors, or `weight` and `bias`."""

    side: str
    bert: BertModel
    projection: Mapping[str, Tensor]


def load_dpr_encoder(folder: Path) -> DprEncoder:
    """Load an encoder of DPR. Raises InputError for a reader of DPR, and for what does not fit."""
    config, tensors = read_config(folder, "dpr"), load_weights(folder)[1]
    side = next((side for side in DPR_SIDES if any(name.startswith(f"{side}.") for name in tensors)), None)
    if side is None:
        raise InputError(
            f"{folder} is not an encoder of DPR: it has no tensor below {' or '.join(DPR_SIDES)}. DPR's reader is no "
            "retriever. Name DPR's question encoder, and its other encoder by --block-encoder."
        )
    below = {name.removeprefix(f"{side}."): tensor for name, tensor in tensors.items()}
    bert = {name.removeprefix("bert_model."): tensor for name, tensor in below.items()}
    projection = {
        name.removeprefix(DPR_PROJECTION): bert.pop(name) for name in below if name.startswith(DPR_PROJECTION)
    }
    return DprEncoder(side, _filled(config, bert, folder, "cls"), projection)


def _filled(config: BertConfig, tensors: Mapping[str, Tensor], folder: Path, pooling: Pooling) -> BertModel:
    """Return the BERT with these tensors. Shapes are checked on a copy without memory first."""
    if getattr(config, "position_embedding_type", "absolute") != "absolute":
        raise InputError(
            f"{folder} has position embeddings of type {str(config.position_embedding_type)[:40]!r}. Only BERTs with learned "
            "absolute positions can be imported."
        )
    pooler = pooling == "pooler"
    with torch.device("meta"):
        expected = BertModel(config, add_pooling_layer=pooler).state_dict()
    given = {_modern(name): tensor for name, tensor in tensors.items() if not UNUSED.fullmatch(name)}
    if not pooler:
        given = {name: tensor for name, tensor in given.items() if not name.startswith("pooler.")}
    for name, tensor in expected.items():
        if name in given and not given[name].is_floating_point():
            raise InputError(
                f"The tensor '{name}' in {folder} holds {given[name].dtype}, not floating-point numbers of shape "
                f"{tuple(tensor.shape)}. Quantised weights cannot be imported; get the original ones."
            )
    model = BertModel(config, add_pooling_layer=pooler)
    load_into(model, {name: tensor.float() for name, tensor in given.items()}, folder)
    return model.eval()


def _modern(name: str) -> str:
    """Translate a name of old TensorFlow exports."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
