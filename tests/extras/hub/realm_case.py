"""One small case of REALM and ORQA: sizes, inputs, and weights that follow from their names alone."""

from __future__ import annotations

import zlib

import numpy as np
import torch
from torch import nn

CONFIG = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "hidden_act": "gelu_new",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
PROJECTION, CLS, SEP, MASK = 16, 1, 2, 3
QUERIES = [[10, 3, 11, 3, 12], [20, 3]]
POSITIONS, TARGETS = [[2, 4], [2]], [[33, 34], [35]]
TITLES = [[], [40, 41], [42]] * 2
BODIES = [[], [33, 5, 6, 34], [7, 8, 9, 50, 51, 52], [], [35, 53], [54, 55, 56, 57, 58]]
QUESTION, EVIDENCE, ANSWER = [10, 11], [[33, 34, 35, 36], [37, 33, 34]], [33, 34]
RELEVANCE, SPAN_WIDTH = [0.7, -0.4, 0.1, 0.2], 3


def fill(module: nn.Module, renames: dict[str, str]) -> None:
    """Give each parameter numbers that depend on its BERT name and shape alone."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            for old, new in renames.items():
                name = name.replace(old, new)
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            values = rng.standard_normal(parameter.shape) * 0.2 + ("orm" in name and name.endswith("weight"))
            parameter.copy_(torch.from_numpy(values))
