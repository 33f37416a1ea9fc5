"""The machines of a plan: how many devices, and how fast each does each kind of work. A table has the devices to be named.

Peak speed and memory are those that the makers state.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from realmctl.errors import ConfigError
from realmctl.forecast.costs import Cost, WorkKind

CORES_OF_A_DEVICE = 12
"""Cores that come with each device. An assumption."""
HNSW_RATE = 1.5e7
"""rows · log2(rows) · ef_construction that one core inserts in a second: 100,000 vectors of 128 numbers in 11 s."""
GATE_RATE = 6.4e9
"""Numbers of vectors that the recall gate of an int8 index compares in a second on one core, with exact search and with its own:
1,000 queries and a million vectors of 128 numbers in 20 s (docs/results/indexes/report.md)."""
FAISS_RATE = 3.7e4
"""Rows that one core adds to an inverted file with product quantization in a second, with the gate (docs/results/indexes/report.md)."""
READ_RATE = 35e6
"""Bytes of XML that the process that reads a .bz2 dump decompresses in a second."""
COPY_RATE = 1e9
"""Bytes that are copied and hashed in a second."""
UTILISATION = {"train": 0.15, "embed": 0.10}
"""Share of the peak that training and embedding reach. An H100 reached .07 to .23 in training steps of a BERT-base, and .10 in embedding with reading and writing
(docs/results/gpu/report.md). Use --calibrate on the device itself."""
NETWORK_BYTES_PER_SECOND = 25e9
"""Bytes that each device sends in a second to devices of other hosts (200 Gbit/s). An assumption too."""
TEXT_RATES = {"chunk": 3.0e6, "tag": 1.7e5}
"""What one core does in a second: bytes of corpus that `chunk` reads (benchmarks/dump_to_blocks.md), wordpieces in which `tag` finds names and dates by rules
(benchmarks/growth.md). A statistical tagger is many times slower than the rules."""


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


@dataclass(frozen=True)
class Machines:
    """Devices that train, and devices that refresh the index.

    Attributes:
        name: What the devices are, for people.
        devices: Number of devices that train, embed and map.
        refresh_devices: Number of devices of the refresher; 0 means that it shares those that train.
        rates: {kind of work: amount that one device does in a second}.
        own_rates: {output: the same for the stage that makes it}, as measured. They come first.
        startup: {output: seconds before its first unit of work}, as measured.
        memory_bytes: Memory of one device; None if it is not known.
    """

    name: str
    devices: int
    refresh_devices: int
    rates: Mapping[WorkKind, float]
    own_rates: Mapping[str, float] = field(default_factory=dict)
    startup: Mapping[str, float] = field(default_factory=dict)
    memory_bytes: float | None = None

    def seconds(self, name: str, cost: Cost) -> float | None:
        """Seconds of a stage on all devices, without its network traffic. None if the rate is not known."""
        rate = self.own_rates.get(name) or self.rates.get(cost.kind)
        if not rate:
            return None
        working = cost.work / rate / self.used_by(cost)
        if cost.kind == "chunk":
            working = max(working, cost.work / READ_RATE)
        return self.startup.get(name, 0.0) + working

    def used_by(self, cost: Cost) -> int:
        """Number of devices that a stage can use: in training no more than the batch has rows."""
        return min(self.devices, cost.rows) if cost.steps else self.devices

    def refresh_seconds(self, flops: float) -> float | None:
        """Seconds in which one device embeds all blocks."""
        return flops / self.rates["embed"] if self.rates.get("embed") else None

    def build_seconds(self, index: tuple[str, Cost] | None) -> float:
        """Seconds in which one device builds an index again, given its name and its cost; 0 where they are not known."""
        return dataclasses.replace(self, devices=1).seconds(*index) or 0.0 if index else 0.0


def device_named(name: str) -> Device:
    """Return a device of the table. Raises ConfigError for an unknown name."""
    if name not in DEVICES:
        raise ConfigError(
            f"--device {name}: the table has {', '.join(DEVICES)}. For another device, run with --calibrate on it."
        )
    return DEVICES[name]


def named_devices(device: Device, devices: int, refresh_devices: int) -> Machines:
    """Machines with devices of the table."""
    rates: dict[WorkKind, float] = {
        "train": device.flops * UTILISATION["train"],
        "embed": device.flops * UTILISATION["embed"],
        "chunk": TEXT_RATES["chunk"] * CORES_OF_A_DEVICE,
        "tag": TEXT_RATES["tag"] * CORES_OF_A_DEVICE,
        "hnsw": HNSW_RATE * CORES_OF_A_DEVICE,
        "gate": GATE_RATE * CORES_OF_A_DEVICE,
        "faiss": FAISS_RATE * CORES_OF_A_DEVICE,
        "copy": COPY_RATE,
    }
    return Machines(device.name, devices, refresh_devices, rates, memory_bytes=device.memory_bytes)
