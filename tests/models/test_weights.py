import torch

from realmctl.models.weights import hash_tensors, load_tensors, save_tensors


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
