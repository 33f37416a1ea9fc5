from functools import cache
from pathlib import Path

import pytest
import torch

from realmctl.errors import ConfigError, ResourceError
from realmctl.models import precision
from realmctl.models.precision import autocast, has_bf16, pick_device, seed_everything


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
    half = precision == "bf16" or (precision == "auto" and has_bf16(cpu))
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


def test_the_processor_is_what_linux_says_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpuinfo").write_text("vendor_id\t: GenuineIntel\nflags\t: fpu avx512_bf16\n", encoding="utf-8")
    monkeypatch.setattr(precision, "Path", lambda _: tmp_path / "cpuinfo")
    monkeypatch.setattr(precision, "processor", cache(precision.processor.__wrapped__))
    assert {"GenuineIntel", "avx512_bf16"} <= precision.processor()
    assert has_bf16(torch.device("cpu"))
    (tmp_path / "cpuinfo").unlink()
    precision.processor.cache_clear()
    assert not precision.processor() and not has_bf16(torch.device("cpu"))
