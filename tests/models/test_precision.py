from functools import cache
from pathlib import Path

import pytest
import torch

from realmctl.errors import ConfigError, ResourceError
from realmctl.models import precision
from realmctl.models.precision import autocast, bf16_is_faster, pick_device, seed_everything


def test_devices() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ConfigError, match="not a device"):
        pick_device("gpu!")
    with pytest.raises(ResourceError, match="CUDA"):
        pick_device("cuda:99")


@pytest.mark.parametrize("precision", ["fp32", "bf16", "auto"])
def test_autocast_gives_the_kind_it_names(precision: str) -> None:
    cpu = torch.device("cpu")
    half = precision == "bf16" or (precision == "auto" and bf16_is_faster(cpu))
    with autocast(cpu, precision):
        assert torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype == (torch.bfloat16 if half else torch.float32)


def test_unknown_precision() -> None:
    with pytest.raises(ConfigError, match="not a precision"):
        autocast(torch.device("cpu"), "fp16")


def test_a_seed_repeats() -> None:
    seed_everything(3)
    first = torch.rand(3)
    seed_everything(3)
    assert torch.equal(first, torch.rand(3))


@pytest.mark.parametrize(
    ("vendor", "flags", "faster"),
    [
        ("GenuineIntel", "fpu avx512f avx512_bf16", False),  # AMX is hidden by the virtual machine
        ("GenuineIntel", "fpu avx512f avx512_bf16 amx_bf16 amx_tile", True),
        ("AuthenticAMD", "fpu avx512f avx512_bf16", True),
        ("AuthenticAMD", "fpu avx2", False),
        ("0x41", "fp asimd bf16", True),  # ARM
    ],
)
def test_auto_takes_bfloat16_on_processors_that_are_faster_with_it(
    vendor: str, flags: str, faster: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"vendor_id\t: {vendor}\nflags\t: {flags}\n", encoding="utf-8")
    monkeypatch.setattr(precision, "Path", lambda _: tmp_path / "cpuinfo")
    monkeypatch.setattr(precision, "processor", cache(precision.processor.__wrapped__))
    assert bf16_is_faster(torch.device("cpu")) is faster
    assert precision.frozen_dtype(torch.device("cpu")) == (torch.bfloat16 if faster else torch.float32)
    (tmp_path / "cpuinfo").unlink()
    precision.processor.cache_clear()
    assert not precision.processor() and not bf16_is_faster(torch.device("cpu"))
