"""Devices that a plan can name: their peak speed and memory, as their makers state them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from realmctl.errors import ConfigError

UTILISATION = {"train": 0.35, "embed": 0.45}
"""Share of the peak that training and embedding reach. This is an assumption until a GPU has been measured: use --calibrate on
the device itself."""
NETWORK_BYTES_PER_SECOND = 25e9
"""Bytes that each device sends in a second to devices of other hosts (200 Gbit/s). An assumption too."""
TEXT_RATES = {"chunk": 3.0e6, "tag": 1.0e6}
"""What one core does in a second: bytes of corpus that `chunk` reads, wordpieces in which `tag` finds anchors, names and dates
by rules. benchmarks/dump_to_blocks.md has the first. A statistical tagger is some hundred times slower than the rules."""


@dataclass(frozen=True)
class Device:
    """A device. `flops` is the peak of dense bfloat16 products with float32 sums, per second."""

    name: str
    flops: float
    memory_bytes: float
    source: str


_NVIDIA = "https://www.nvidia.com/en-us/data-center/"
DEVICES: Mapping[str, Device] = {
    device.name: device
    for device in (
        Device("h200", 989e12, 141e9, f"{_NVIDIA}h200/ (SXM, half of the figure with sparsity)"),
        Device("h100", 989e12, 80e9, f"{_NVIDIA}h100/ (SXM, half of the figure with sparsity)"),
        Device("a100-80gb", 312e12, 80e9, f"{_NVIDIA}a100/"),
        Device("a100-40gb", 312e12, 40e9, f"{_NVIDIA}a100/"),
        Device("l40s", 362e12, 48e9, f"{_NVIDIA}l40s/"),
        Device("a10", 125e12, 24e9, f"{_NVIDIA}products/a10-gpu/"),
        Device("l4", 121e12, 24e9, f"{_NVIDIA}l4/ (half of the figure with sparsity)"),
    )
}


def device_named(name: str) -> Device:
    """Return a device of the table. Raises ConfigError for an unknown name."""
    if name not in DEVICES:
        raise ConfigError(
            f"--device {name}: the table has {', '.join(DEVICES)}. For another device, run with --calibrate on it."
        )
    return DEVICES[name]
