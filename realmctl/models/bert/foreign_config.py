"""The config.json of a model from elsewhere: it is checked before any weight of the model is allocated.

No code of a folder is run, and no size is taken on trust.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from realmctl.errors import InputError, one_line
from realmctl.models.bert.limits import SIZE_LIMITS, check_kind, check_numbers
from realmctl.models.weights import WithoutDraws

CONFIG = "config.json"
CODE_FIELDS = ("auto_map", "custom_pipelines")
"""Fields of config.json that name Python files to run."""
MAX_CONFIG_BYTES = 16 * 2**20
LARGEST, MOST_LAYERS = SIZE_LIMITS["vocab_size"], SIZE_LIMITS["num_hidden_layers"]
"""Limits on any integer of config.json, and on those with `layer` in their name. Published models are well below both."""


def read_fields(path: Path) -> dict[str, Any]:
    """Return the fields of a config.json. Every reader of such a file begins here.

    Raises:
        OSError, ValueError, RecursionError: It is missing, no regular file, too large, or not a JSON object.
    """
    if not path.is_file():
        raise ValueError("there is no such file")
    if path.stat().st_size > MAX_CONFIG_BYTES:
        raise ValueError(f"it has more than {MAX_CONFIG_BYTES:,} bytes")
    fields = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(fields, dict):
        raise ValueError("it is not a JSON object")
    return fields


def read_config(folder: Path, what: str) -> Any:
    """Return the configuration of a folder as transformers has it.

    Args:
        folder: Folder with config.json.
        what: Kind of model, for the message.

    Raises:
        InputError: The file is missing, damaged or too large, a size is beyond the limits, or the model brings its own code.
    """
    from transformers import AutoConfig

    path = folder / CONFIG
    try:
        fields = read_fields(path)
        if named := [name for name in CODE_FIELDS if name in fields]:
            raise ValueError(f"its field {named[0]} asks to run Python code from the folder, and realmctl never does")
        for name, value in _integers(fields):
            least, most = (0, MOST_LAYERS) if "layer" in name else (-LARGEST, LARGEST)
            if not least <= value <= most:
                raise ValueError(f"{name} is {str(value)[:40]}; it must lie between {least:,} and {most:,}")
        if not isinstance(fields.get("model_type"), str):
            raise ValueError("it has no model_type")
        config = AutoConfig.for_model(**fields)
        check_numbers(config)
        if "position_embedding_type" not in type(config)().to_dict():  # transformers does not compute what it asks for
            check_kind({"position_embedding_type": fields.get("position_embedding_type")})
    except Exception as error:  # transformers raises many kinds for fields of a wrong type
        raise InputError(
            f"{path} does not describe a {what} that can be used: {one_line(error)}. Use another folder."
        ) from None
    return config


def count_weights(folder: Path, kind: Any, config: Any, advice: str) -> int:
    """Return the number of weights of a model.

    Args:
        folder: Where the model is, for the message.
        kind: Class of transformers that builds the model.
        config: What `read_config` returned.
        advice: What to name instead if the configuration is of another kind of model.

    Raises:
        InputError: The class cannot build a model from the configuration.
    """
    try:
        with torch.device("meta"), WithoutDraws():
            return sum(weight.numel() for weight in kind.from_config(config).parameters())
    except Exception as error:
        raise InputError(f"{folder / CONFIG}: no model can be built from it ({one_line(error)}). {advice}") from None


def _integers(fields: Mapping[str, object]) -> Iterator[tuple[str, int]]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _integers(value)
        elif type(value) is int:
            yield name, value
