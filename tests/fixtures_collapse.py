"""Models made by hand for tests of a healthy pre-training and of collapsed ones: no training of seconds gives them.

All are one layer that attends to every word alike, so that its state says which words there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from transformers import BertForMaskedLM, BertModel

from realmctl.artifact import Artifact, Writer
from realmctl.nn.bert import save_masked_lm, scratch_config
from realmctl.nn.retriever import Retriever
from realmctl.retrieval.bert import packer_of, tokenizer_of
from realmctl.stage import Stage, reads, setting

SIZE, HIDDEN = "L1-H64-A1", 64


class CopyingEncoder(Stage):
    """A masked-language model that bets on the words of its input; with `attends` 0 it does not look at them."""

    makes = "encoder"
    blocks: Artifact = reads("blocks", help="Whose vocabulary it has.")
    attends: float = setting("How much it attends.", default=8.0)

    def run(self, out: Writer) -> Mapping[str, Any]:
        torch.manual_seed(0)
        mlm = BertForMaskedLM(config_of(self.blocks))
        attend_to_all(mlm.bert, self.attends)
        with torch.no_grad():
            head = mlm.cls.predictions.transform.dense
            head.weight.copy_(torch.eye(HIDDEN))
            head.bias.fill_(3.0)  # where gelu is next to the identity
        save_masked_lm(mlm, out.path)
        out.copy_folder(".", self.blocks.path / "tokenizer")
        return {}


class WordRetriever(Stage):
    """A retriever that scores a block by the words it shares with the query.

    All queries look alike to one that sees nothing, and like the null document to one that sees null.
    """

    makes = "retriever"
    blocks: Artifact = reads("blocks", help="Whose vocabulary it has.")
    sees: Literal["words", "nothing", "null"] = setting("What it sees of a query.", default="words")

    def run(self, out: Writer) -> Mapping[str, Any]:
        torch.manual_seed(1)
        bert = BertModel(config_of(self.blocks))
        attend_to_all(bert, 8.0)
        retriever = Retriever.from_bert(bert, projection=HIDDEN, query_length=24, block_length=48, towers="separate")
        assert retriever.block_tower is not None
        with torch.no_grad():
            for tower in (retriever.query_tower, retriever.block_tower):
                tower.bert.pooler.dense.weight.copy_(0.1 * torch.eye(HIDDEN))
                tower.projection.weight.copy_(torch.eye(HIDDEN))
            if self.sees != "words":
                null = packer_of(tokenizer_of(self.blocks)).block([[]], [[]], 48)
                constant = torch.randn(HIDDEN) if self.sees == "nothing" else retriever.eval().embed_blocks(null)[0]
                retriever.query_tower.projection.weight.zero_()
                retriever.query_tower.norm.bias.copy_(constant)
        retriever.save(out.path)
        out.copy_folder("tokenizer", self.blocks.path / "tokenizer")
        return {}


def config_of(blocks: Artifact) -> Any:
    """One layer, no dropout, the vocabulary of the blocks."""
    return scratch_config(SIZE, tokenizer_of(blocks).get_vocab_size(), 0.0)


@torch.no_grad()
def attend_to_all(bert: BertModel, gain: float) -> None:
    """Add `gain` times the mean of all words to each; words are random unit vectors, places and segments nothing."""
    words, layer, eye = bert.embeddings.word_embeddings.weight, bert.encoder.layer[0], torch.eye(HIDDEN)
    words.copy_(torch.nn.functional.normalize(torch.randn_like(words), dim=1))
    bert.embeddings.position_embeddings.weight.zero_()
    bert.embeddings.token_type_embeddings.weight.zero_()
    for linear, factor in (
        (layer.attention.self.query, 0.0),
        (layer.attention.self.key, 0.0),
        (layer.attention.self.value, 1.0),
        (layer.attention.output.dense, gain),
    ):
        linear.weight.copy_(factor * eye)
        linear.bias.zero_()
    layer.output.dense.weight.zero_()
