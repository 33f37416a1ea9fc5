"""Encoders whose weights come from files are made without drawing any."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from realmctl.models.bert.files import load_bert, load_masked_lm, save_bert, save_masked_lm, scratch_config
from realmctl.models.bert.modules import BertForMaskedLM, BertModel
from realmctl.models.weights import WithoutDraws


@pytest.mark.parametrize("draw", [nn.init.normal_, nn.init.uniform_, nn.init.xavier_normal_, nn.init.trunc_normal_])
def test_a_draw_is_zeros_and_ends(draw):
    with WithoutDraws():
        layer = nn.Linear(3, 4)
        draw(layer.weight)
    assert not layer.weight.any() and layer.weight.requires_grad
    draw(layer.weight)
    assert layer.weight.any()


def test_loading_leaves_the_generator_as_it_was(tmp_path):
    """So nothing was drawn, and the weights are those of the file."""
    torch.manual_seed(3)
    base, whole = BertModel(scratch_config("L2-H16", 40)), BertForMaskedLM(scratch_config("L2-H16", 40))
    save_bert(base, tmp_path / "base")
    save_masked_lm(whole, tmp_path / "whole")
    before = torch.get_rng_state()
    loaded = load_bert(tmp_path / "base", pooler=True), load_masked_lm(tmp_path / "whole")[0]
    assert torch.equal(torch.get_rng_state(), before)
    for model, wanted in zip(loaded, (base, whole), strict=True):
        assert all(torch.equal(each, model.state_dict()[name]) for name, each in wanted.state_dict().items())


def test_a_head_that_the_file_lacks_is_drawn(tmp_path):
    save_bert(BertModel(scratch_config("L2-H16", 40), add_pooling_layer=False), tmp_path)
    model, has_head = load_masked_lm(tmp_path)
    assert not has_head and model.cls.predictions.transform.dense.weight.any()
