"""BERT's own modules beside transformers': names, starting weights, dropout, activations, configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from torch import nn
from torch.testing import assert_close
from transformers.activations import ACT2FN
from transformers.models.bert import modeling_bert

from realmctl.models.bert.activations import ACTIVATIONS
from realmctl.models.bert.config import BertConfig
from realmctl.models.bert.files import scratch_config
from realmctl.models.bert.layers import fresh_layer
from realmctl.models.bert.modules import BertForMaskedLM, BertModel, BertPooler, draw_weights
from tests.fixtures.transformers_bert import transformers_config

CONFIG = scratch_config("L2-H16", 40, init_std=0.3)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(BertModel, transformers.BertModel), (BertForMaskedLM, transformers.BertForMaskedLM)],
)
def test_a_seed_gives_the_weights_that_it_gives_in_transformers(ours: type[nn.Module], theirs: type[nn.Module]) -> None:
    made, after = [], []
    for kind, config in ((ours, CONFIG), (theirs, transformers_config(CONFIG))):
        torch.manual_seed(5)
        made.append(kind(config))
        after.append(torch.get_rng_state())
    assert torch.equal(*after)
    own, other = (list(model.state_dict().items()) for model in made)
    assert [name for name, _ in own] == [name for name, _ in other]
    assert all(torch.equal(one, two) for (_, one), (_, two) in zip(own, other, strict=True))
    assert [name for name, _ in made[0].named_parameters()] == [name for name, _ in made[1].named_parameters()]
    rates = [{n: m.p for n, m in model.named_modules() if isinstance(m, nn.Dropout)} for model in made]
    assert rates[0] == rates[1] != {}


def test_a_pooler_and_a_layer_that_are_added_later_start_so_too() -> None:
    theirs = transformers.BertModel(transformers_config(CONFIG))
    torch.manual_seed(5)
    pooler = BertPooler(CONFIG)
    draw_weights(pooler, CONFIG)
    layer = fresh_layer(CONFIG)
    torch.manual_seed(5)
    for module, kind in ((pooler, modeling_bert.BertPooler), (layer, modeling_bert.BertLayer)):
        other = kind(theirs.config).apply(theirs._init_weights)
        assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in module.state_dict().items())


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_transformers(name: str) -> None:
    state = torch.linspace(-9, 9, 4001)
    assert_close(ACTIVATIONS[name](state), ACT2FN[name](state), atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("field", ["hidden_act", "pad_token_id", "layer_norm_eps", "initializer_range"])
def test_what_is_written_is_what_transformers_reads(field: str, tmp_path: Path) -> None:
    other = {"hidden_act": "relu", "pad_token_id": 3, "layer_norm_eps": 1e-5, "initializer_range": 0.5}
    config = BertConfig.from_dict({**CONFIG.to_dict(), field: other[field]})
    config.save_pretrained(tmp_path)
    read = transformers.AutoConfig.from_pretrained(tmp_path)
    assert isinstance(read, transformers.BertConfig) and getattr(read, field) == other[field]
    fields = json.loads((tmp_path / "config.json").read_text())
    assert {name: getattr(read, name) for name in fields} == fields


def test_what_transformers_writes_is_read_and_its_defaults_are_the_same(tmp_path: Path) -> None:
    theirs = transformers.BertConfig(hidden_size=24, num_attention_heads=3, dtype="float16")
    theirs.save_pretrained(tmp_path)
    read = BertConfig.from_dict(json.loads((tmp_path / "config.json").read_text())).to_dict()
    assert read == {name: theirs.to_dict()[name] for name in read}
    assert "dtype" not in read, "the weights are written in float32"


@pytest.mark.parametrize("field", ["hidden_size", "hidden_act", "layer_norm_eps"])
def test_a_field_of_another_type(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        BertConfig.from_dict({field: [1]})
