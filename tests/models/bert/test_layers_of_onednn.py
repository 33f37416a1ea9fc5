"""Dense layers by pieces: against `F.linear` in double precision, with its gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from realmctl.models import precision
from realmctl.models.bert import layers

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this PyTorch does not offer oneDNN's products"
)
SIZES = [(1,), (63,), (64,), (65,), (512,), (700,), (1100,), (3, 5), (2, 100), (0,)]


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The way of such processors, wherever the tests run; how many tokens oneDNN computed at each call."""
    taken: list[int] = []
    onednn = layers._onednn
    monkeypatch.setattr(layers, "onednn_is_faster", lambda: True)
    monkeypatch.setattr(layers, "_NARROW", 1)
    monkeypatch.setattr(layers, "_onednn", lambda *given: taken.append(len(given[0])) or onednn(*given))
    return taken


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_equals_the_layer_in_double_precision(pieces: list[int], size: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    layer = nn.Linear(24, 40, bias=bias)
    state, weights = torch.randn(*size, 24, requires_grad=True), torch.randn(*size, 40)
    found = gradients(layer, state, layers.linear(layer, state), weights)
    exact = nn.Linear(24, 40, bias=bias).double()
    exact.load_state_dict(layer.state_dict())
    wide = state.detach().double().requires_grad_()
    expected = gradients(exact, wide, exact(wide), weights.double())
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5 * max(size) ** 0.5)
    tokens = int(np.prod(size))
    assert pieces == [tokens - tokens % 64] * (2 if tokens >= 64 else 0), "forward, and the gradient of the state"


def gradients(layer: nn.Linear, state: Tensor, output: Tensor, weights: Tensor) -> list[Tensor]:
    return [output, *torch.autograd.grad(output, [state, *layer.parameters()], weights)]


def test_float32_products_do_not_round_to_bfloat16(pieces: list[int]) -> None:
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, 1 + 2**-12)
    state = torch.full((64, 1), 1 + 2**-11)
    assert torch.equal(layers.linear(layer, state), F.linear(state, layer.weight))
    assert pieces


def test_frozen_weights_get_no_gradient(pieces: list[int]) -> None:
    layer = nn.Linear(8, 8).requires_grad_(False)
    state = torch.randn(64, 8, requires_grad=True)
    layers.linear(layer, state).sum().backward()
    assert layer.weight.grad is None and state.grad is not None
    assert len(pieces) == 2, "one product forward, one for the state's gradient, none for the weight's"


@pytest.mark.parametrize(("inputs", "outputs"), [(256, 256), (255, 1024), (1024, 255)])
def test_narrow_layers_go_the_usual_way(
    pieces: list[int], monkeypatch: pytest.MonkeyPatch, inputs: int, outputs: int
) -> None:
    monkeypatch.setattr(layers, "_NARROW", 256)
    layer, state = nn.Linear(inputs, outputs), torch.randn(64, inputs)
    layers.linear(layer, state)
    assert bool(pieces) == (min(inputs, outputs) >= 256)


@pytest.mark.parametrize("kind", ["bf16 autocast", "double"])
def test_other_number_formats_go_the_usual_way(pieces: list[int], kind: str) -> None:
    layer, state = nn.Linear(8, 8), torch.randn(64, 8)
    if kind == "double":
        layer, state = layer.double(), state.double()
    with torch.autocast("cpu", torch.bfloat16, enabled=kind == "bf16 autocast"):
        output = layers.linear(layer, state)
        assert torch.equal(output, layer(state))
    assert output.dtype == (torch.bfloat16 if kind == "bf16 autocast" else torch.float64)
    assert not pieces


@pytest.mark.parametrize(
    ("maker", "capability", "faster"),
    [
        ("AuthenticAMD", "AVX512", True),
        ("AuthenticAMD", "AVX2", False),
        ("GenuineIntel", "AVX512", False),
        ("", "AVX512", False),
    ],
)
def test_which_processors(monkeypatch: pytest.MonkeyPatch, maker: str, capability: str, faster: bool) -> None:
    monkeypatch.setattr(precision, "processor", lambda: frozenset([maker]))
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert precision.onednn_is_faster() is faster
