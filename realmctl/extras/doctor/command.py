"""`realmctl doctor`: describe the installation and the machine, and measure its speed."""

from __future__ import annotations

import importlib
import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from textwrap import wrap
from typing import TYPE_CHECKING

from realmctl.amounts import size_text
from realmctl.errors import ResourceError, one_line
from realmctl.execution.cores import free_cores, usable_cores
from realmctl.pipeline import InWorkspace, Show
from realmctl.version import __version__

if TYPE_CHECKING:  # machine.py imports torch, which may be damaged
    from realmctl.extras.doctor.machine import TorchFacts

REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+).*;.*extra\s*==\s*['\"]([A-Za-z0-9._-]+)['\"]")
EXTRAS_FOR_DEVELOPERS = ("dev", "docs")
"""Of realmctl up to November 2026; they are dependency groups now."""
Extras = Mapping[str, Mapping[str, str | None]]
"""{extra: {package: version, or None if it is not installed}}."""


@dataclass(frozen=True)
class Environment:
    """The installation and the machine. Sizes are in bytes.

    cores: those that this process may use. load: processes that ran or waited in the last minute, on the whole machine. torch:
    {"error": why} when PyTorch cannot be imported. hnswlib: whether it can be imported; only hnsw indexes need it.
    """

    realmctl: str
    python: str
    system: str
    cores: int
    free_cores: int
    load: float
    memory_bytes: int
    workspace: str
    free_disk_bytes: int
    extras: Extras
    torch: TorchFacts | dict[str, str]
    hnswlib: bool


class Doctor(InWorkspace):
    """Describe the installation and the machine: versions, devices, extras, free disk, and the speed measured in two seconds."""

    def run(self, show: Show) -> None:
        torch: TorchFacts | dict[str, str]
        try:
            from realmctl.extras.doctor.machine import torch_facts

            torch = torch_facts()
        except (ImportError, OSError) as error:
            torch = {"error": one_line(error)}
        folder = next(
            place for place in (self.workspace.absolute(), *self.workspace.absolute().parents) if place.exists()
        )
        found = Environment(
            realmctl=__version__,
            python=platform.python_version(),
            system=platform.platform(),
            cores=usable_cores(),
            free_cores=free_cores(),
            load=round(os.getloadavg()[0], 1),
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            workspace=str(self.workspace),
            free_disk_bytes=shutil.disk_usage(folder).free,
            extras=installed_extras(),
            torch=torch,
            hnswlib=_works("hnswlib"),
        )
        show(found, _text)
        if isinstance(torch, dict):
            raise ResourceError(f"PyTorch cannot be imported ({torch['error']}). Install realmctl again.")


def _works(package: str) -> bool:
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


def installed_extras() -> Extras:
    """Return the extras of realmctl's metadata. They are empty if realmctl runs from a source folder without being installed."""

    def version(package: str) -> str | None:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return None

    found: dict[str, dict[str, str | None]] = {}
    try:
        requirements = metadata.requires("realmctl") or []
    except metadata.PackageNotFoundError:
        return found
    for requirement in requirements:
        match = REQUIREMENT.fullmatch(requirement)
        if match and match[1] != "realmctl" and match[2] not in EXTRAS_FOR_DEVELOPERS:
            found.setdefault(match[2], {})[match[1]] = version(match[1])
    return found


def _text(found: Environment) -> str:
    lines = {
        "realmctl": found.realmctl,
        "Python": found.python,
        "system": found.system,
        "cores": f"{found.cores}, of which {found.free_cores} {'is' if found.free_cores == 1 else 'are'} free (load {found.load:g})",
        "memory": size_text(found.memory_bytes),
        "free disk": f"{size_text(found.free_disk_bytes)} for {found.workspace}",
    }
    if isinstance(found.torch, dict):
        lines["PyTorch"] = f"cannot be imported: {found.torch['error']}"
    else:
        facts, speed = found.torch, found.torch.gflops
        devices = (
            each["device"] + (f" ({each['name']}, {size_text(each['memory_bytes'])})" if "name" in each else "")
            for each in facts.devices
        )
        lines |= {
            "PyTorch": f"{facts.version}, {facts.threads} thread{'s' if facts.threads > 1 else ''}",
            "products": f"{' and '.join(facts.blas)}, instructions {facts.instructions}",
            "devices": ", ".join(devices),
            "speed": f"{speed['fp32']:,.0f} GFLOP/s in fp32, {speed['bf16']:,.0f} in bf16, on {facts.default_device}; --precision auto takes "
            + ("bf16" if facts.bf16_is_faster else "fp32"),
        }
    lines["hnswlib"] = (
        "works" if found.hnswlib else "cannot be imported; hnsw needs it (it needs a C++ compiler), and exact does not"
    )
    shown = [f"{name:<12} {text}" for name, text in lines.items()]
    if found.free_cores < found.cores:
        threads = f"{found.free_cores} thread{'s' if found.free_cores > 1 else ''}"
        shown.append(f"busy         commands compute with {threads} now, and with --threads N with N")
    return "\n".join([*shown, "extras:", *_extras_lines(found.extras)])


def _extras_lines(extras: Extras) -> Iterator[str]:
    if not extras:
        yield "  unknown: realmctl is not installed as a package"
    width = max(map(len, extras), default=0) + 1
    for extra, packages in extras.items():
        missing = [name for name, version in packages.items() if version is None]
        there = ", ".join(f"{name} {version}" for name, version in packages.items() if version)
        said = f"missing: pip install 'realmctl[{extra}]'" if missing else there
        yield from wrap(said, 100, initial_indent=f"  {extra:<{width}} ", subsequent_indent=" " * (width + 3))
