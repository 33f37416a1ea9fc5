"""Retriever artifacts small enough to embed with inside a test: fresh weights, the vocabulary of given
blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import BertModel

from realmctl.artifact import Artifact, Writer
from realmctl.nn.bert import scratch_config
from realmctl.nn.retriever import Retriever
from realmctl.retrieval.bert import tokenizer_of
from realmctl.stage import Stage, reads, setting


class FixtureRetriever(Stage):
    """A retriever that learnt nothing."""

    makes = "retriever"
    blocks: Artifact = reads("blocks", help="Whose vocabulary it has.")
    towers: Literal["shared", "separate", "query-only"] = setting("Its towers.", default="shared")
    block_length: int = setting("Wordpieces of a block.", default=48)
    seed: int = setting("Of its weights.", default=0)

    def run(self, out: Writer) -> Mapping[str, Any]:
        retriever = fresh_retriever(self.blocks, self.seed, self.block_length, self.towers)
        retriever.save(out.path)
        out.copy_folder("tokenizer", self.blocks.path / "tokenizer")
        return {}


def fresh_retriever(
    blocks: Artifact,
    seed: int = 0,
    block_length: int = 48,
    towers: Literal["shared", "separate", "query-only"] = "shared",
) -> Retriever:
    """One layer of 16, projected to 8, with weights wide enough that different blocks lie apart."""
    torch.manual_seed(seed)
    config = scratch_config("L1-H16", tokenizer_of(blocks).get_vocab_size(), init_std=0.5)
    pair: Literal["shared", "separate"] = "shared" if towers == "shared" else "separate"
    retriever = Retriever.from_bert(
        BertModel(config), projection=8, query_length=24, block_length=block_length, towers=pair
    )
    assert retriever.block_tower is not None
    for tower in (retriever.query_tower, retriever.block_tower):
        torch.nn.init.uniform_(tower.norm.weight, 0.5, 1.5)  # as after training: or else all vectors have one length
    return (retriever.query_only() if towers == "query-only" else retriever).eval()


def make_retriever(path: Path, blocks: Artifact, **settings: Any) -> Artifact:
    """Write a retriever as an artifact under the series folder `path`."""
    return FixtureRetriever(blocks=blocks, **settings).make(path)
