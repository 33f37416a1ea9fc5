import pytest
import torch
from torch import nn

from realmctl.errors import InputError
from realmctl.models.bert.config import BertConfig
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.optimizer import BertAdamW, bert_lr, decay_groups, layer_lr_multipliers
from realmctl.models.weights import load_tensors, save_tensors
from realmctl.training.settings.base import TrainSettings


def test_three_steps_are_the_recurrences_by_hand() -> None:
    weight, bias = nn.Parameter(torch.tensor([0.5])), nn.Parameter(torch.tensor([-0.2]))
    optimizer = BertAdamW([{"params": [weight], "weight_decay": 0.01}, {"params": [bias], "weight_decay": 0.0}])
    w, b, moments = 0.5, -0.2, {"w": (0.0, 0.0), "b": (0.0, 0.0)}

    def by_hand(value: float, key: str, gradient: float, rate: float, decay: float) -> float:
        m, v = moments[key]
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        moments[key] = m, v
        return value - rate * (m / (v**0.5 + 1e-6) + decay * value)

    for rate, gw, gb in ((0.1, 0.3, -0.4), (0.05, -0.6, 0.8), (0.02, 3.0, 4.0)):
        norm = (gw**2 + gb**2) ** 0.5
        shrink = min(1.0, 1.0 / norm)
        weight.grad, bias.grad = torch.tensor([gw]), torch.tensor([gb])
        optimizer.set_lr(rate)
        optimizer.step()
        w, b = by_hand(w, "w", gw * shrink, rate, 0.01), by_hand(b, "b", gb * shrink, rate, 0.0)
        assert optimizer.gradient_norm.item() == pytest.approx(norm, rel=1e-6)
        assert weight.item() == pytest.approx(w, rel=1e-5)
        assert bias.item() == pytest.approx(b, rel=1e-5)


def test_with_bias_correction_it_is_torchs_adamw() -> None:
    ours, theirs = nn.Parameter(torch.tensor([0.5])), nn.Parameter(torch.tensor([0.5]))
    corrected = BertAdamW([ours], lr=0.1, bias_correction=True)
    plain = torch.optim.AdamW([theirs], lr=0.1, eps=1e-6, weight_decay=0.01)
    for gradient in (0.3, -0.2, 0.9):
        ours.grad, theirs.grad = torch.tensor([gradient]), torch.tensor([gradient])
        corrected.step()
        plain.step()
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)


def test_schedule_of_the_paper_run() -> None:
    total, base = 200_000, 3e-5
    warmup = TrainSettings(steps=total).warmup_steps
    assert warmup == 10_000
    assert bert_lr(0, total, warmup, base) == 0
    assert bert_lr(warmup - 1, total, warmup, base) == pytest.approx(2.9997e-5)
    assert bert_lr(warmup, total, warmup, base) == pytest.approx(2.85e-5)
    assert bert_lr(total - 1, total, warmup, base) == pytest.approx(1.5e-10)
    assert [TrainSettings(steps=steps).warmup_steps for steps in (150, 5000)] == [15, 500]


def test_norms_and_biases_do_not_decay(mlm: BertForMaskedLM) -> None:
    decayed, plain = decay_groups([mlm, mlm.bert], 0.01)
    names = {id(parameter): name for name, parameter in mlm.named_parameters()}
    assert all(names[id(p)].endswith("bias") or "LayerNorm" in names[id(p)] for p in plain["params"])
    assert not any(names[id(p)].endswith("bias") or "LayerNorm" in names[id(p)] for p in decayed["params"])
    assert len(decayed["params"]) + len(plain["params"]) == len(names)
    assert (decayed["weight_decay"], plain["weight_decay"]) == (0.01, 0.0)


def test_what_is_within_a_paced_module_keeps_its_decay() -> None:
    fast, slow = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2)), nn.Linear(3, 2)
    groups = decay_groups([nn.ModuleList([slow, fast, slow])], 0.01, {fast: 4.0})
    found = {(group.get("lr_multiplier", 1.0), group["weight_decay"]): len(group["params"]) for group in groups}
    assert found == {(1.0, 0.01): 1, (1.0, 0.0): 1, (4.0, 0.01): 1, (4.0, 0.0): 3}
    optimizer = BertAdamW(groups)
    optimizer.set_lr(0.5)
    assert {(group.get("lr_multiplier", 1.0), group["lr"]) for group in optimizer.param_groups} == {
        (1.0, 0.5),
        (4.0, 2.0),
    }


def small_run(optimizer: BertAdamW, linear: nn.Linear, steps: range) -> None:
    for step in steps:
        optimizer.zero_grad()
        linear(torch.full((2, 3), float(step + 1))).square().sum().backward()
        optimizer.set_lr(0.01)
        optimizer.step()


def test_a_restored_optimizer_goes_on_bit_for_bit(tmp_path) -> None:
    straight, resumed = nn.Linear(3, 2), nn.Linear(3, 2)
    resumed.load_state_dict(straight.state_dict())
    first = BertAdamW(decay_groups([straight]))
    small_run(first, straight, range(5))
    second = BertAdamW(decay_groups([resumed]))
    small_run(second, resumed, range(2))
    save_tensors(second.tensors(), tmp_path / "optimizer.safetensors")
    third = BertAdamW(decay_groups([resumed]))
    third.restore(load_tensors(tmp_path / "optimizer.safetensors"), tmp_path)
    small_run(third, resumed, range(2, 5))
    assert torch.equal(straight.weight, resumed.weight)
    assert torch.equal(straight.bias, resumed.bias)


def test_the_state_of_another_model_is_refused() -> None:
    one, other = nn.Linear(3, 2), nn.Linear(5, 2)
    optimizer = BertAdamW(decay_groups([one]))
    small_run(optimizer, one, range(1))
    with pytest.raises(InputError, match="another model"):
        BertAdamW(decay_groups([other])).restore(optimizer.tensors(), "here")


def test_learning_rates_fall_from_layer_to_layer_and_the_head_keeps_the_whole_rate() -> None:
    config = BertConfig(vocab_size=11, hidden_size=4, num_hidden_layers=3, num_attention_heads=1, intermediate_size=4)
    mlm = BertForMaskedLM(config)
    groups = decay_groups([mlm], lr_multipliers=layer_lr_multipliers(mlm.bert, 0.5))
    factor = {id(p): group.get("lr_multiplier", 1.0) for group in groups for p in group["params"]}
    for name, parameter in mlm.named_parameters():
        expected = {"embeddings": 0.125, "0": 0.25, "1": 0.5, "2": 1.0}
        parts = name.split(".")
        key = parts[3] if parts[1] == "encoder" else parts[1]
        assert factor[id(parameter)] == expected.get(key if parts[0] == "bert" else "", 1.0), name
    assert sum(len(group["params"]) for group in groups) == len(list(mlm.parameters()))
    assert layer_lr_multipliers(mlm.bert, 1) == {}
