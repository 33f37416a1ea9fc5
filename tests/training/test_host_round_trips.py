"""Between the start of a forward pass and the end of the backward pass, nothing is read back from the device.

A read makes the processor wait until the device has done all that was asked of it. Here all tensors are on the CPU, so the operations
that would read are refused: a tensor that becomes a number (`_local_scalar_dense`), and a size that depends on values (`nonzero`).
tests/cuda has CUDA itself say so.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from realmctl.models.bert.layers import TokenLayout
from realmctl.pipeline.discovery import own_stages
from realmctl.training import loop
from realmctl.training.objective import StepSums
from tests.fixtures.chain import FINETUNING, pretrain


class NoReads(TorchDispatchMode):
    """Refuses what would read from the device."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        name = function.overloadpacket._qualified_op_name
        assert name not in ("aten::_local_scalar_dense", "aten::nonzero"), function
        if name == "aten::index" and arguments[0].is_floating_point():  # masks of other masks are prepared on the CPU
            assert not any(index is not None and index.dtype == torch.bool for index in arguments[1]), function
        return function(*arguments, **(keywords or {}))


@pytest.fixture
def refused(monkeypatch):
    """Refuse reads within the forward and backward pass. The layout of tokens is computed from a mask on the CPU, so it may read."""
    gradients, lay_out = loop._Run._gradients, TokenLayout.__init__

    def without_reads(run: Any, parts: Any) -> StepSums:
        with NoReads():
            return gradients(run, parts)

    def on_host(layout: TokenLayout, packed: Any) -> None:
        with _disable_current_modes():
            lay_out(layout, packed)

    monkeypatch.setattr(loop._Run, "_gradients", without_reads)
    monkeypatch.setattr(TokenLayout, "__init__", on_host)


def stages(chain) -> dict[str, Any]:
    found, short = own_stages(), {"steps": 2, "batch_size": 4, "lr": 1e-3, "warmup": 1}
    encoder = {"blocks": chain.blocks, "encoder": chain.encoder, **short}
    questions = {
        **FINETUNING,
        "steps": 2,
        "blocks": chain.blocks,
        "encoder": chain.encoder,
        "questions": chain.questions,
    }
    return {
        "mlm": found["mlm-init"](blocks=chain.blocks, bert="scratch:L1-H16", length=24, micro_batch=3, **short),
        "mlm-no-dropout": found["mlm-init"](
            blocks=chain.blocks, bert="scratch:L1-H16", length=24, dropout=0.0, **short
        ),
        "condenser": found["condenser-init"](length=24, skip_from=0, contrastive=True, **encoder),
        "retromae": found["retromae-init"](length=24, **encoder),
        "ict": found["ict-init"](null_share=0.2, **encoder),
        "ict-cache": found["ict-init"](null_share=0.2, micro_batch=2, **encoder),
        "pretrain": pretrain(chain, steps=2, refresh="never"),
        "pretrain-no-null": pretrain(chain, steps=2, refresh="never", null_document=False, marginal="sequence"),
        "closed-book": found["finetune"](retrieval="none", **questions),
    }


@pytest.mark.parametrize(
    "name",
    [
        "mlm",
        "mlm-no-dropout",
        "condenser",
        "retromae",
        "ict",
        "ict-cache",
        "pretrain",
        "pretrain-no-null",
        "closed-book",
    ],
)
def test_no_value_is_read_before_the_backward_pass_is_over(chain, refused, tmp_path, name):
    assert stages(chain)[name].make(tmp_path / "made").metrics["steps"] == 2


def test_the_search_finds_reads():
    for read in (lambda x: float(x.sum()), lambda x: x[x > 0], lambda x: x.nonzero(), lambda x: bool(x.any())):
        with pytest.raises(AssertionError), NoReads():
            read(torch.ones(3))


def test_sums_are_those_of_floats_added_in_order():
    sums = StepSums()
    assert not sums.learned and sums.read() == (None, {})
    values = [torch.tensor(0.1), torch.tensor(0.2), torch.tensor(0.3)]
    for value in values:
        sums.add(value, {"a": (value, 2), "b": (torch.tensor(3), torch.tensor(4))})
    sums.add(None, {"a": (1.5, 1)})
    total = float(values[0]) + float(values[1]) + float(values[2])
    assert sums.learned and sums.read() == (total, {"a": (total + 1.5, 7.0), "b": (9.0, 12.0)})
