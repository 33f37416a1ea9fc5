"""`realmctl doctor`: describe the installation and the machine, and measure its speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts.catalogue import size_text
from realmctl.cli.environment import environment
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace
from realmctl.errors import ResourceError


def doctor(workspace: Workspace = Path("artifacts"), json: Json = False) -> None:
    """Describe the installation and the machine: versions, devices, extras, free disk, and the speed measured in two seconds."""
    value = {**environment(workspace), "torch": _torch()}
    print_result(value, json, _text)
    if error := value["torch"].get("error"):
        raise ResourceError(f"PyTorch cannot be imported ({error}). Install realmctl again.")


def _torch() -> dict[str, Any]:
    try:
        from realmctl.cli.machine import torch_facts
    except (ImportError, OSError) as error:
        return {"error": " ".join(str(error).split())}
    return torch_facts()


def _text(value: Mapping[str, Any]) -> str:
    lines = {
        "realmctl": value["realmctl"],
        "Python": value["python"],
        "system": value["system"],
        "cores": value["cores"],
        "memory": size_text(value["memory_bytes"]),
        "free disk": f"{size_text(value['free_disk_bytes'])} for {value['workspace']}",
        **_torch_lines(value["torch"]),
    }
    return "\n".join(
        [*(f"{name:<12} {text}" for name, text in lines.items()), "extras:", *_extras_lines(value["extras"])]
    )


def _torch_lines(facts: Mapping[str, Any]) -> dict[str, str]:
    if "error" in facts:
        return {"PyTorch": f"cannot be imported: {facts['error']}"}
    speed = facts["gflops"]
    return {
        "PyTorch": f"{facts['version']}, {facts['threads']} threads",
        "products": f"{' and '.join(facts['blas'])}, instructions {facts['instructions']}",
        "devices": ", ".join(map(_device, facts["devices"])),
        "bf16": "in hardware" if facts["bf16_in_hardware"] else "not in hardware; --precision auto uses fp32",
        "speed": f"{speed['fp32']:,.0f} GFLOP/s in fp32, {speed['auto']:,.0f} in auto, on {facts['default_device']}",
    }


def _device(entry: Mapping[str, Any]) -> str:
    return str(entry["device"]) + (f" ({entry['name']}, {size_text(entry['memory_bytes'])})" if "name" in entry else "")


def _extras_lines(extras: Mapping[str, Mapping[str, str | None]]) -> Iterator[str]:
    if not extras:
        yield "  unknown: realmctl is not installed as a package"
    width = max(map(len, extras), default=0) + 1
    for extra, packages in extras.items():
        missing = [name for name, version in packages.items() if version is None]
        there = ", ".join(f"{name} {version}" for name, version in packages.items() if version)
        yield f"  {extra:<{width}} " + (f"missing: pip install 'realmctl[{extra}]'" if missing else there)
