"""One small case of REALM and ORQA whose numbers come from transformers 4.57.6, and how they were made.

Weights and inputs follow from this file alone, so that both sides can build them. To make the numbers anew,
in an environment of their own: `pip install torch==2.13.0 transformers==4.57.6 numpy`, then run this file.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

CONFIG = {
    "vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "max_position_embeddings": 40, "hidden_act": "gelu_new",
    "layer_norm_eps": 1e-12, "pad_token_id": 0, "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
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


def rows(firsts: list[list[int]], seconds: list[list[int]]) -> dict[str, Tensor]:
    """`[CLS] first [SEP] second [SEP]`, padded."""
    whole = [[CLS, *a, SEP, *b, SEP] for a, b in zip(firsts, seconds, strict=True)]
    width = max(map(len, whole))
    starts = [len(first) + 2 for first in firsts]
    return {
        "input_ids": torch.tensor([row + [0] * (width - len(row)) for row in whole]),
        "attention_mask": torch.tensor([[int(i < len(row)) for i in range(width)] for row in whole]),
        "token_type_ids": torch.tensor(
            [[int(s <= i < len(row)) for i in range(width)] for s, row in zip(starts, whole, strict=True)]
        ),
    }


def by_query(inputs: dict[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    return {prefix + name: part.view(len(QUERIES), 3, -1) for name, part in inputs.items()}


def transformers_numbers() -> dict[str, Any]:
    """Scores, loss and span scores as transformers 4.57.6 computes them."""
    from transformers import RealmConfig, RealmKnowledgeAugEncoder, RealmReader, RealmScorer

    config = RealmConfig(
        **CONFIG, num_candidates=3, retriever_proj_size=PROJECTION, max_span_width=SPAN_WIDTH,
        reader_beam_size=2, searcher_beam_size=4,
    )  # fmt: skip
    scorer, encoder, reader = RealmScorer(config), RealmKnowledgeAugEncoder(config), RealmReader(config)
    fill(
        scorer.embedder,
        {"realm.": "bert.", "cls.dense": "projection.dense", "cls.LayerNorm": "projection.LayerNorm"},
    )
    fill(encoder, {"realm.": "bert."})
    encoder.cls.predictions.decoder.weight = encoder.realm.embeddings.word_embeddings.weight
    encoder.cls.predictions.decoder.bias = encoder.cls.predictions.bias
    names = {"dense_intermediate": "dense", "layer_normalization": "norm", "dense_output": "output"}
    fill(reader, {"realm.": "bert.", "qa_outputs.": "head.", **names})
    for module in (scorer, encoder, reader):
        module.eval()
    queries = [[CLS, *query, SEP] for query in QUERIES]
    query_ids = torch.tensor([row + [0] * (7 - len(row)) for row in queries])
    candidates = by_query(rows(TITLES, BODIES), "candidate_")
    score_BN = scorer(query_ids, (query_ids > 0).long(), **candidates).relevance_score
    joint = by_query(rows([query for query in QUERIES for _ in range(3)], BODIES))
    labels = torch.full((2, joint["input_ids"].shape[2]), -100)
    for row, (places, targets) in enumerate(zip(POSITIONS, TARGETS, strict=True)):
        labels[row, places] = torch.tensor(targets)
    loss = encoder(**joint, relevance_score=score_BN, labels=labels, mlm_mask=labels >= 0).loss
    evidence = rows([QUESTION] * 2, EVIDENCE)
    block_mask = evidence["token_type_ids"].bool() & (evidence["input_ids"] != SEP)
    output = reader(
        **evidence, relevance_score=torch.tensor(RELEVANCE), block_mask=block_mask,
        start_positions=torch.tensor([[4], [5]]), end_positions=torch.tensor([[5], [6]]),
        has_answers=torch.tensor([True, True, False, False]),
    )  # fmt: skip
    return {
        "score_BN": score_BN.tolist(), "loss": loss.item(), "reader_loss": output.reader_loss.item(),
        "retriever_loss": output.retriever_loss.item(), "block": output.block_idx.item(),
        "span": [output.start_pos.item(), output.end_pos.item()],
    }  # fmt: skip


if __name__ == "__main__":
    print(transformers_numbers())
