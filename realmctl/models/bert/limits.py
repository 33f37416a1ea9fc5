"""Limits on the size of a BERT, checked before its weights are allocated.

A name such as `scratch:L9999-H65536` or a damaged config.json asks for any amount of memory. The limits are well above every
published BERT. Below them, the weights must fit into the memory that is free.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realmctl.errors import ResourceError

SIZE_LIMITS: Mapping[str, int] = {
    "num_hidden_layers": 256,
    "hidden_size": 16_384,
    "num_attention_heads": 256,
    "intermediate_size": 65_536,
    "vocab_size": 4_194_304,
    "max_position_embeddings": 131_072,
    "type_vocab_size": 1_024,
}
"""{field of config.json: its largest value}. The smallest value of each is 1."""
RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
BYTES_OF_A_WEIGHT = 4
"""float32, in which every model is made and loaded."""


def check_sizes(fields: Mapping[str, Any]) -> None:
    """Check the sizes in the fields of a config.json. Fields that are missing have a default and are not checked.

    Raises:
        ValueError: A size is not an integer within its limits, or the sizes do not fit together.
    """
    for name, most in SIZE_LIMITS.items():
        value = fields.get(name, 1)
        if type(value) is not int or not 1 <= value <= most:
            raise ValueError(f"{name} is {str(value)[:40]!r}; it must be an integer from 1 to {most:,}")
    if (
        "hidden_size" in fields
        and "head_dim" not in fields
        and fields["hidden_size"] % fields.get("num_attention_heads", 1)
    ):
        raise ValueError(f"{fields['num_attention_heads']} heads do not divide hidden_size {fields['hidden_size']}")
    pad = fields.get("pad_token_id")
    if pad is not None and (type(pad) is not int or not 0 <= pad < fields.get("vocab_size", SIZE_LIMITS["vocab_size"])):
        raise ValueError(f"pad_token_id is {str(pad)[:40]!r}; it must be a row of the vocabulary")
    for name in RATES:
        value = fields.get(name, 0.0)
        if type(value) not in (int, float) or not 0 <= value <= 1:
            raise ValueError(f"{name} is {str(value)[:40]!r}; it must be a number from 0 to 1")


def check_kind(fields: Mapping[str, object]) -> None:
    """Check that the fields of a config.json ask for nothing that is not computed here: BERT with learned absolute positions.

    transformers 5 ignores `position_embedding_type`, so a BERT with relative positions would run, and compute something else.

    Raises:
        ValueError: They ask for other positions, or for a decoder.
    """
    positions = fields.get("position_embedding_type")
    if positions not in (None, "absolute"):
        raise ValueError(
            f"position_embedding_type is {str(positions)[:40]!r}, and only learned absolute positions are computed"
        )
    for name in ("is_decoder", "add_cross_attention"):
        if fields.get(name):
            raise ValueError(f"{name} is {str(fields[name])[:40]}, and only encoders are computed")


def check_numbers(config: Any) -> None:
    """Check that each field whose default is a number is one, or None. Older versions of transformers do not check it.

    Args:
        config: A configuration of transformers.

    Raises:
        ValueError: A field is no number.
    """
    for name, default in type(config)().to_dict().items():
        value = getattr(config, name, None)
        if type(default) in (int, float) and value is not None and type(value) not in (int, float):
            raise ValueError(f"{name} is {str(value)[:40]!r}; it must be a number")


def weight_count(layers: int, hidden: int, intermediate: int, vocabulary: int, positions: int, segments: int) -> int:
    """Return the number of weights of a BERT with its masked-language-model head and tied decoder, without a pooler."""
    embeddings = (vocabulary + positions + segments + 2) * hidden
    layer = 4 * (hidden + 1) * hidden + (hidden + 1) * intermediate + (intermediate + 1) * hidden + 4 * hidden
    head = (hidden + 1) * hidden + 2 * hidden + vocabulary
    return embeddings + layers * layer + head


def weights_of(config: Any) -> int:
    """Return the number of weights of an encoder with this configuration, counted as BERT's."""
    return weight_count(
        config.num_hidden_layers,
        config.hidden_size,
        config.intermediate_size,
        config.vocab_size,
        config.max_position_embeddings,
        getattr(config, "type_vocab_size", 0),
    )


def require_memory(weights: int, what: object, bytes_of_a_weight: int = BYTES_OF_A_WEIGHT) -> None:
    """Raise ResourceError where the weights of a model, by default in float32, need more than the free memory. `what` is its spec or folder."""
    needed, free = bytes_of_a_weight * weights, free_memory()
    if needed > free:
        raise ResourceError(
            f"The weights of {what} need {needed / 1e9:.1f} GB of memory ({weights:,} weights), and {free / 1e9:.1f} GB "
            "are free. Use a smaller model, or free some memory."
        )


def free_memory() -> int:
    """Return the bytes that a process can still allocate: MemAvailable and SwapFree of Linux, else all memory."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
        return 1024 * (kilobytes["MemAvailable"] + kilobytes["SwapFree"])
    except (OSError, ValueError, KeyError, IndexError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
