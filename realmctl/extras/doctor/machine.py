"""What PyTorch finds on this machine: devices, libraries, and the measured speed of matrix products."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import torch

from realmctl.models.precision import autocast, bf16_is_faster, pick_device

WIDTH = 768
ROWS = 2048
"""The measured product is the first one of a feed-forward layer of BERT-base: 2048 wordpieces, 768 by 3072."""


class Device(TypedDict):
    """A device that `--device` accepts here. A GPU has a name and a memory in bytes."""

    device: str
    name: NotRequired[str]
    memory_bytes: NotRequired[int]


@dataclass(frozen=True)
class TorchFacts:
    """PyTorch's version, threads, libraries and devices, and the speed of the default device by precision."""

    version: str
    threads: int
    blas: list[str]
    instructions: str
    bf16_is_faster: bool
    devices: list[Device]
    default_device: str
    gflops: dict[str, float]


def torch_facts(seconds: float = 2.0) -> TorchFacts:
    """Find the facts.

    Args:
        seconds: Time that the measurement takes, half of it for each precision.
    """
    device = pick_device()
    devices: list[Device] = [{"device": "cpu"}]
    for number in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(number)
        devices.append({"device": f"cuda:{number}", "name": properties.name, "memory_bytes": properties.total_memory})
    return TorchFacts(
        version=torch.__version__,
        threads=torch.get_num_threads(),
        blas=_blas(),
        instructions=torch.backends.cpu.get_cpu_capability(),
        bf16_is_faster=bf16_is_faster(device),
        devices=devices,
        default_device=str(device),
        gflops={name: _gflops(device, name, seconds / 2) for name in ("fp32", "bf16")},
    )


def _blas() -> list[str]:
    """Return the libraries for matrix products on the CPU."""
    available = {"MKL": torch.backends.mkl.is_available(), "oneDNN": torch.backends.mkldnn.is_available()}  # type: ignore[no-untyped-call]
    return [name for name, there in available.items() if there] or ["built-in"]


@torch.no_grad()
def _gflops(device: torch.device, precision: str, seconds: float) -> float:
    """Measure products for `seconds` and return 10^9 floating-point operations per second."""
    rows, weight = torch.randn(ROWS, WIDTH, device=device), torch.randn(4 * WIDTH, WIDTH, device=device)
    with autocast(device, precision):
        _product(rows, weight)
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            _product(rows, weight)
            count += 1
        elapsed = time.perf_counter() - start
    return round(count * 2 * ROWS * WIDTH * 4 * WIDTH / elapsed / 1e9, 1)


def _product(rows: torch.Tensor, weight: torch.Tensor) -> None:
    torch.nn.functional.linear(rows, weight)
    if rows.is_cuda:
        torch.cuda.synchronize(rows.device)
