"""Our way of applying BERT's weights against transformers' own forward pass."""

import weakref

import pytest
import torch
from torch.testing import assert_close

from realmctl.models.bert import attention, layers
from realmctl.models.bert.files import scratch_config
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.encoder import cls_state, hidden_states, layer_states, states_at, states_at_places
from realmctl.models.inputs import TokenBatch
from tests.fixtures.transformers_bert import as_transformers


def reference(mlm: BertForMaskedLM, packed: TokenBatch, **options: bool):
    return as_transformers(mlm).bert(packed.ids_BL, packed.mask_BL.long(), packed.segments_BL, **options)


@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu"])
def test_hidden_states_are_transformers_own(batch: TokenBatch, act: str) -> None:
    mlm = BertForMaskedLM(scratch_config("L2-H32-A4", 300, 0.0, hidden_act=act, init_std=0.2)).eval()
    ours, theirs = hidden_states(mlm.bert, batch), reference(mlm, batch).last_hidden_state
    assert_close(ours[batch.mask_BL], theirs[batch.mask_BL], atol=2e-6, rtol=1e-5)
    assert not ours[~batch.mask_BL].any()


def test_every_layer_can_be_read(mlm: BertForMaskedLM, batch: TokenBatch) -> None:
    theirs = reference(mlm, batch, output_hidden_states=True).hidden_states
    for layer, ours in zip((0, 2, 3), layer_states(mlm.bert, batch, (0, 2, 3)), strict=True):
        assert_close(ours[batch.mask_BL], theirs[layer][batch.mask_BL], atol=2e-6, rtol=1e-5)


def test_last_layer_at_cls_alone_changes_nothing(mlm: BertForMaskedLM, batch: TokenBatch) -> None:
    whole = cls_state(mlm.bert, batch, last_layer_cls_only=False)
    assert_close(cls_state(mlm.bert, batch), whole, atol=2e-6, rtol=1e-5)


def test_gradients_through_the_last_layer_at_some_positions(mlm: BertForMaskedLM, batch: TokenBatch) -> None:
    position_BP = torch.tensor([[0, 2], [1, 0], [30, 4], [3, 3]])
    weight = torch.randn(4, 2, 32)
    gradients = []
    for states in (
        states_at(mlm.bert, batch, position_BP),
        reference(mlm, batch).last_hidden_state[torch.arange(4)[:, None], position_BP],
    ):
        mlm.zero_grad()
        (states * weight).sum().backward()
        gradients.append({name: p.grad.clone() for name, p in mlm.bert.named_parameters()})
    for name, gradient in gradients[0].items():
        assert_close(gradient, gradients[1][name], atol=1e-4, rtol=1e-3, msg=name)


def test_states_at_places_are_those_of_every_position(mlm: BertForMaskedLM, batch: TokenBatch) -> None:
    """Rows with several places, with one and with none; transformers' states are the oracle."""
    width = batch.ids_BL.shape[1]
    place_M = torch.tensor([0, 2, 2 * width + 1, 2 * width + 30, 3 * width, 3 * width + 4])
    weight = torch.randn(6, 32)
    theirs = reference(mlm, batch).last_hidden_state.flatten(0, 1)[place_M]
    ours = states_at_places(mlm.bert, batch, place_M)
    assert_close(ours, theirs, atol=2e-6, rtol=1e-5)
    parameters = dict(mlm.bert.named_parameters())
    found, expected = (
        torch.autograd.grad((states * weight).sum(), parameters.values(), allow_unused=True)
        for states in (ours, theirs)
    )
    for name, one, other in zip(parameters, found, expected, strict=True):
        if other is not None:
            assert_close(one, other, atol=1e-4, rtol=1e-3, msg=name)


def test_recomputing_changes_no_gradient(
    mlm: BertForMaskedLM, batch: TokenBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gradient() -> torch.Tensor:
        mlm.zero_grad()
        cls_state(mlm.bert, batch).square().sum().backward()
        return mlm.bert.encoder.layer[0].intermediate.dense.weight.grad.clone()

    plain = gradient()
    monkeypatch.setattr(layers, "_WORTH_RECOMPUTING", 0)
    assert torch.equal(gradient(), plain)
    for layer in mlm.bert.train().encoder.layer:
        layer.gradient_checkpointing = True
    assert torch.equal(gradient(), plain)


@pytest.mark.parametrize("worth", [True, False])
def test_a_large_activation_is_not_kept(
    mlm: BertForMaskedLM, batch: TokenBatch, monkeypatch: pytest.MonkeyPatch, worth: bool
) -> None:
    made = []

    def activation(state: torch.Tensor) -> torch.Tensor:
        made.append(weakref.ref(activated := torch.nn.functional.gelu(state)))
        return activated

    monkeypatch.setattr(layers, "ACTIVATIONS", {"gelu": activation})
    monkeypatch.setattr(layers, "_WORTH_RECOMPUTING", 0 if worth else 1 << 40)
    states = cls_state(mlm.bert, batch)
    alive, forward = [reference() is not None for reference in made], len(made)
    assert alive == [not worth] * forward
    states.sum().backward()
    assert len(made) == (2 * forward if worth else forward)


def test_padded_attention_for_accelerators_is_the_same(
    mlm: BertForMaskedLM, batch: TokenBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    position_BP = torch.tensor([[0, 2], [1, 0], [30, 4], [3, 3]])
    by_length = states_at(mlm.bert, batch, position_BP)
    monkeypatch.setattr(layers, "attend", attention.attend_padded)
    assert_close(states_at(mlm.bert, batch, position_BP), by_length, atol=2e-6, rtol=1e-5)


def test_bf16_autocast_is_close(mlm: BertForMaskedLM, batch: TokenBatch) -> None:
    exact = cls_state(mlm.bert, batch)
    with torch.autocast("cpu", torch.bfloat16):
        rough = cls_state(mlm.bert, batch)
    assert torch.cosine_similarity(exact, rough.float()).min() > 0.99
    rough.float().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in mlm.parameters())


def test_padding_does_not_matter(mlm: BertForMaskedLM, batch: TokenBatch) -> None:
    assert batch.mask_BL[1].sum() == 8
    alone = TokenBatch(batch.ids_BL[1:2, :8], batch.mask_BL[1:2, :8], batch.segments_BL[1:2, :8])
    assert_close(cls_state(mlm.bert, alone)[0], cls_state(mlm.bert, batch)[1], atol=2e-6, rtol=1e-5)


def test_dropout_acts_in_training_alone(batch: TokenBatch) -> None:
    mlm = BertForMaskedLM(scratch_config("L2-H32-A4", 300, 0.5))
    assert_close(cls_state(mlm.eval().bert, batch), cls_state(mlm.bert, batch))
    assert not torch.equal(cls_state(mlm.train().bert, batch), cls_state(mlm.bert, batch))
