"""LoRA adapters (Hu et al. 2021) in the folders of PEFT: they are added to the weights of their encoder, W + scale * B A, at import."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from realmctl.errors import InputError
from realmctl.imports.encoder_folder import EncoderSource
from realmctl.imports.model_folder import read_json
from realmctl.log import say
from realmctl.models.bert.files import IGNORED, read_config
from realmctl.models.families.known import family
from realmctl.models.weight_files import load_weights
from realmctl.models.weights import load_pickled, load_tensors
from realmctl.pipeline.sources import HUB_FILES, localise

CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
PREFIX = "base_model.model."
UNUSED: Mapping[str, tuple[object, ...]] = {
    "use_dora": (None, False),
    "bias": (None, "none"),
    "fan_in_fan_out": (None, False),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
    "modules_to_save": (None, []),
    "layer_replication": (None, []),
    "target_parameters": (None, []),
    "trainable_token_indices": (None, []),
    "lora_bias": (None, False),
}
"""{field of adapter_config.json: values with which a merge is W + scale * B A}."""


def lora_source(folder: Path) -> EncoderSource:
    """Return the encoder that an adapter is for, with the adapter merged in float32.

    Raises:
        InputError: It is no plain LoRA, it does not fit the encoder, or the encoder is missing or of an unknown family.
    """
    stated = read_json(folder / CONFIG)
    if stated.get("peft_type") != "LORA":
        raise _unfit(folder, f"its peft_type is {str(stated.get('peft_type'))[:40]!r}, and only LORA is merged")
    for name, plain in UNUSED.items():
        if stated.get(name) not in plain:
            raise _unfit(folder, f"its {name} is {str(stated[name])[:60]}, which is not merged")
    rank, alpha, named = stated.get("r"), stated.get("lora_alpha"), stated.get("base_model_name_or_path")
    if (
        not isinstance(rank, int)
        or rank < 1
        or not isinstance(alpha, int | float)
        or not isinstance(named, str)
        or not named
    ):
        raise _unfit(folder, f"{CONFIG} lacks r, lora_alpha or base_model_name_or_path")
    beside = folder / named
    base = (
        beside
        if (beside / "config.json").is_file()
        else Path(localise(named, (), True, "base_model_name_or_path", files=HUB_FILES))
    )
    config = read_config(base)
    known = family(config.model_type)
    stored = {
        name: tensor.float()
        for name, tensor in load_weights(base)[1].items()
        if not IGNORED.fullmatch(name) and not name.startswith(known.head)
    }
    tensors = dict(known.named(config, stored))
    scale = alpha / (math.sqrt(rank) if stated.get("use_rslora") else rank)
    adapters = _adapters(folder)
    for place in sorted({name.rpartition(".lora_")[0] for name in adapters}):
        name = _weight(folder, place, tensors)
        up, down = adapters.get(f"{place}.lora_B.weight"), adapters.get(f"{place}.lora_A.weight")
        if (
            up is None
            or down is None
            or (up.shape[0], down.shape[1]) != tensors[name].shape
            or up.shape[1:] != down.shape[:1]
        ):
            raise _unfit(
                folder, f"its matrices for {place[:80]} do not fit a weight of shape {tuple(tensors[name].shape)}"
            )
        tensors[name] = tensors[name] + scale * (up.float() @ down.float())
    say(f"{folder} is an adapter (LoRA) of {named}: it is merged into its weights")
    return EncoderSource(config, tensors, base=base)


def _adapters(folder: Path) -> dict[str, Tensor]:
    """Return the tensors of an adapter without their prefix. Raises InputError for a tensor that is no matrix of LoRA."""
    path = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if path is None:
        raise _unfit(folder, f"it holds neither {' nor '.join(WEIGHTS)}")
    found = load_pickled(path) if path.suffix == ".bin" else load_tensors(path)
    for name in found:
        if not name.endswith((".lora_A.weight", ".lora_B.weight")):
            raise _unfit(folder, f"it holds the tensor {name[:80]!r}, which is no matrix of LoRA")
    if not found:
        raise _unfit(folder, "it is empty")
    return {name.removeprefix(PREFIX): tensor for name, tensor in found.items()}


def _weight(folder: Path, place: str, tensors: Mapping[str, Any]) -> str:
    """Return the name of the weight that an adapter changes. The names of both may begin with that of the model around the encoder."""
    wanted = f"{place}.weight"
    found = [name for name in tensors if name == wanted or name.endswith(f".{wanted}") or wanted.endswith(f".{name}")]
    if len(found) != 1:
        raise _unfit(folder, f"it changes {place[:80]}, which its encoder does not have")
    return found[0]


def _unfit(folder: Path, why: str) -> InputError:
    return InputError(
        f"{folder} holds an adapter that cannot be merged: {why}. Merge it with peft (merge_and_unload), and import the result."
    )
