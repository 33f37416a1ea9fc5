"""Choice of device, arithmetic precision and seed."""

from __future__ import annotations

import random
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from realmctl.errors import ConfigError, ResourceError
from realmctl.execution import processes
from realmctl.pipeline.fields import check_precision


def pick_device(name: str = "auto") -> torch.device:
    """Return the device of this name.

    `auto` is the first CUDA device, or the CPU where there is none. With several processes `auto` gives each its own device.

    On a GPU PyTorch no longer chooses cuDNN for attention in this process: cuDNN plans each shape that it has not met, which takes longer
    than the attention, and texts give a new shape with every batch (docs/results/gpu/report.md).

    Raises:
        ConfigError: the name is not a device.
        ResourceError: this process does not see that CUDA device.
    """
    device = _device(name)
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)
    return device


def _device(name: str) -> torch.device:
    if name == "auto" and torch.cuda.is_available() and processes.world_size() > 1:
        name = f"cuda:{processes.local_rank()}"
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"'{name}' is not a device. Use auto, cpu, cuda or cuda:N.") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ResourceError(
            f"The device '{name}' was requested, but this process has access to {torch.cuda.device_count()} CUDA "
            "device(s). Use cpu, or check the driver and CUDA_VISIBLE_DEVICES."
        )
    return device


def to_device(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Return the tensor on another device. The processor does not wait for a GPU, which copies out of page-locked memory."""
    device = torch.device(device)
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def bf16_is_faster(device: torch.device) -> bool:
    """Return whether products in bfloat16 are faster than in float32.

    On a CPU they are with AMX, on ARM, and with avx512_bf16 on AMD (2.2 times on a Zen 4). An Intel processor that has avx512_bf16 alone takes
    1.7 times as long as in float32: measured on a Sapphire Rapids whose AMX the virtual machine hides.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    words = processor()
    return not {"amx_bf16", "bf16"}.isdisjoint(words) or {"avx512_bf16", "AuthenticAMD"} <= words


def onednn_is_faster() -> bool:
    """Return whether oneDNN computes products in float32 faster than MKL on this processor.

    True on an AMD processor where PyTorch uses AVX-512 (the environment variable ATEN_CPU_CAPABILITY can forbid it) and offers oneDNN's linear product.
    """
    wide = "AuthenticAMD" in processor() and torch.backends.cpu.get_cpu_capability() == "AVX512"
    return wide and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@cache
def processor() -> frozenset[str]:
    """Return the words of /proc/cpuinfo, which include the vendor and the instruction sets; empty where there is no such file."""
    try:
        return frozenset(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return frozenset()


def autocast(device: torch.device, precision: str = "auto") -> AbstractContextManager[None]:
    """Return the context for a forward pass in `fp32`, `bf16`, or `auto` (bf16 where it is faster)."""
    if frozen_dtype(device, precision) == torch.bfloat16:
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def frozen_dtype(device: torch.device, precision: str = "auto") -> torch.dtype:
    """Return in what weights that take no gradient are held: bfloat16 where `autocast` would compute with it, which halves their memory."""
    check_precision(precision)
    in_bf16 = precision == "bf16" or (precision == "auto" and bf16_is_faster(device))
    return torch.bfloat16 if in_bf16 else torch.float32


def full_precision(device: torch.device) -> AbstractContextManager[None]:
    """Return a context that switches autocast off, for products such as scores of size 100, whose rounding would matter."""
    return torch.autocast(device.type, enabled=False)


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and PyTorch on all devices."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
