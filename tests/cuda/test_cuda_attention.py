"""The ways of attention on a GPU give one result, and no batch waits for a plan of its shape."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from realmctl.models.bert import attention
from realmctl.models.bert.token_layout import TokenLayout
from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import pick_device

LENGTHS = (31, 7, 64, 7, 1)
HEADS, WIDTH = 3, 32


def rows_on(device: str) -> TokenLayout:
    mask_BL = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return TokenLayout(TokenBatch(mask_BL.long(), mask_BL, mask_BL.long()).to(device))


def inputs(whole: bool, dtype: torch.dtype) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    shapes = [(sum(LENGTHS),) if whole else (len(LENGTHS), 2), (sum(LENGTHS),), (sum(LENGTHS),)]
    return [torch.randn(*shape, HEADS, WIDTH, generator=draw, dtype=dtype) for shape in shapes]


@pytest.mark.parametrize("whole", [True, False], ids=["all tokens", "some positions"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rows_end_to_end_are_padded_rows_and_those_of_the_cpu(whole, dtype):
    """In float64 on the CPU, by length: the oracle of both."""
    exact = [each.double().requires_grad_() for each in inputs(whole, dtype)]
    wanted = attention.attend_by_length(*exact, rows_on("cpu"), 0.0)
    gradient = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    wanted.backward(gradient)
    device = str(pick_device("cuda"))
    for way in (attention.attend_end_to_end, lambda *given: attention.attend_padded(*given, 0.0)):
        given = [each.to(device).requires_grad_() for each in inputs(whole, dtype)]
        context = way(*given, rows_on(device))
        context.backward(gradient.to(device, dtype))
        assert_close(context.detach().cpu().double(), wanted.detach(), atol=2e-2, rtol=2e-2)
        for one, other in zip(given, exact, strict=True):
            assert_close(one.grad.cpu().double(), other.grad, atol=4e-2, rtol=4e-2)


@pytest.mark.parametrize(("dropout", "dtype"), [(0.0, torch.bfloat16), (0.5, torch.bfloat16), (0.0, torch.float32)])
def test_the_way_depends_on_type_and_dropout(monkeypatch, dropout, dtype):
    device, used = str(pick_device("cuda")), []
    for name in ("attend_end_to_end", "attend_padded"):
        monkeypatch.setattr(attention, name, lambda *given, name=name: used.append(name))
    attention.attend(*(each.to(device) for each in inputs(True, dtype)), rows_on(device), dropout)
    assert used == ["attend_end_to_end" if not dropout and dtype == torch.bfloat16 else "attend_padded"]


def test_cudnn_is_not_chosen():
    """It plans every new shape for a tenth of a second."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    pick_device("cuda")
    assert not torch.backends.cuda.cudnn_sdp_enabled()
