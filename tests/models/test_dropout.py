"""Dropout of a loaded model: every layer and the configuration that is saved."""

from __future__ import annotations

import copy

import torch
from torch import nn

from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever, set_dropout
from realmctl.tokens.frame import Frame


def test_every_layer_and_what_is_saved(mlm: BertForMaskedLM, tmp_path) -> None:
    retriever = Retriever.from_bert(copy.deepcopy(mlm.bert), projection=8)
    set_dropout(retriever, 0.25)
    assert {part.p for part in retriever.modules() if isinstance(part, nn.Dropout)} == {0.25}
    retriever.save(tmp_path)
    again = Retriever.load(tmp_path)
    assert {part.p for part in again.modules() if isinstance(part, nn.Dropout)} == {0.25}
    assert {part.p for part in mlm.modules() if isinstance(part, nn.Dropout)} != {0.25}, "the origin keeps its own"


def test_dropout_off_makes_training_repeatable(mlm: BertForMaskedLM) -> None:
    retriever = Retriever.from_bert(copy.deepcopy(mlm.bert), projection=8).train()
    query = Collator(Frame.bert(2, 3), 0, 4).query([[7, 8, 9]], 16)
    for rate, repeats in ((0.5, False), (0.0, True)):
        set_dropout(retriever, rate)
        assert torch.equal(retriever.embed_queries(query), retriever.embed_queries(query)) == repeats
