import math
import os

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from realmctl.errors import InputError, QualityError, ResourceError
from realmctl.models import weights
from realmctl.models.bert.files import load_masked_lm, scratch_config
from realmctl.models.weights import hash_tensors, load_into, load_pickled, load_tensors, save_tensors


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


class Unsafe:
    def __reduce__(self) -> tuple:
        return (print, ("executed",))


@pytest.mark.parametrize("read", [load_pickled, lambda path: load_masked_lm(path.parent)])
def test_a_pickle_is_refused_without_advice_to_load_it_anyway(tmp_path, read, capsys) -> None:
    """PyTorch's own message says how to set weights_only to False, which would execute the file."""
    scratch_config("L1-H16", 40).save_pretrained(tmp_path)
    for content in ({"w": Unsafe()}, {"w": torch.nn.Linear(1, 1)}, [torch.ones(1)], {"w": "text"}):
        torch.save(content, tmp_path / "pytorch_model.bin")  # stands for another program's file
        with pytest.raises(InputError) as error:
            read(tmp_path / "pytorch_model.bin")
        said = str(error.value).lower()
        assert not any(word in said for word in ("weights_only", "safe_globals", "arbitrary", "torch.load"))
    assert "executed" not in capsys.readouterr().out


@pytest.mark.parametrize("read", [load_tensors, load_pickled])
def test_weights_in_a_pipe_are_refused_and_not_waited_for(tmp_path, read) -> None:
    os.mkfifo(tmp_path / "weights")
    with pytest.raises(InputError, match="weights"):
        read(tmp_path / "weights")


def test_weights_that_cannot_be_opened_are_not_missing(tmp_path, monkeypatch):
    """safetensors calls every file missing that it cannot open, also when file handles ran out."""
    save_tensors({"a": torch.ones(2)}, tmp_path / "w.safetensors")

    def fails(path, *rest, **more):
        raise FileNotFoundError(f"No such file or directory: {path}")

    for name in ("load_file", "safe_open"):
        monkeypatch.setattr(weights, name, fails)
    with pytest.raises(ResourceError, match="Too many open files"):
        load_tensors(tmp_path / "w.safetensors")
    with pytest.raises(ResourceError, match="Too many open files"):
        save_tensors({"a": torch.ones(2)}, tmp_path / "w.safetensors")
    with pytest.raises(InputError, match="missing"):
        load_tensors(tmp_path / "none.safetensors")
