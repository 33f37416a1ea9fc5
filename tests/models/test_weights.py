import math

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from realmctl.errors import InputError, QualityError
from realmctl.models.weights import hash_tensors, load_into, load_tensors, save_tensors


def test_round_trip_keeps_kind_and_shape(tmp_path) -> None:
    tensors = {"a": torch.randn(2, 3).T, "b": torch.tensor(7), "c": torch.randn(3).bfloat16()}
    save_tensors(tensors, tmp_path / "deep" / "x.safetensors")
    loaded = load_tensors(tmp_path / "deep" / "x.safetensors")
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor)


def test_hash_depends_on_names_kinds_shapes_and_bytes_but_not_on_order() -> None:
    a, b = torch.arange(6.0), torch.ones(2)
    reference = hash_tensors({"a": a, "b": b})
    assert reference == hash_tensors({"b": b, "a": a})
    changed = [a.view(2, 3), a.half(), a + 1]
    others = [{"a": a}, {"a": a, "c": b}, *({"a": other, "b": b} for other in changed)]
    assert len({hash_tensors(other) for other in others} | {reference}) == len(others) + 1
    assert hash_tensors({"a": a.view(2, 3).T}) == hash_tensors({"a": a.view(2, 3).T.contiguous()})
    assert hash_tensors({"s": torch.tensor(1.0), "h": torch.ones(1).bfloat16()})


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_tensor_that_is_not_finite_is_named_and_not_written(tmp_path, wrong: float, dtype: torch.dtype) -> None:
    tensor = torch.zeros(3, 4, dtype=dtype)
    tensors = {"whole": torch.ones(2), "numbers": torch.arange(3), "empty": torch.ones(0), "broken": tensor}
    save_tensors(tensors, tmp_path / "x.safetensors")
    tensor[2, 1] = wrong
    with pytest.raises(QualityError, match="broken"):
        save_tensors(tensors, tmp_path / "y.safetensors")
    assert not (tmp_path / "y.safetensors").exists()
    save_file(tensors, tmp_path / "y.safetensors")
    module = nn.ParameterDict({name: nn.Parameter(each.float(), False) for name, each in tensors.items()})
    with pytest.raises(InputError, match="broken"):
        load_into(module, load_tensors(tmp_path / "y.safetensors"), tmp_path)


def test_numbers_that_float32_does_not_hold_are_infinite(tmp_path) -> None:
    with pytest.raises(InputError, match="weight"):
        load_into(nn.Linear(1, 1, bias=False), {"weight": torch.tensor([[1e300]], dtype=torch.float64)}, tmp_path)
