"""Checkpoints of a run: a folder that exists only once whole, checked by hash before it is believed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from realmctl.errors import InputError
from realmctl.log import warn
from realmctl.nn.weights import load_tensors, optimizer_tensors, restore_optimizer, save_tensors
from realmctl.storage.durable import sync
from realmctl.storage.hashing import digest_file

KEPT = 2
WEIGHTS, MOMENTS, STATE = "modules.safetensors", "optimizer.safetensors", "state.json"


@dataclass(frozen=True)
class Checkpoints:
    """The newest two checkpoints of one run, in `folder`."""

    folder: Path
    modules: nn.Module
    optimizer: torch.optim.Optimizer

    def save(self, step: int, state: Mapping[str, Any]) -> None:
        """Write the checkpoint of `step`, durable before the one before last is dropped."""
        final = self.folder / f"step-{step:08d}"
        partial = final.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        save_tensors(module_tensors(self.modules), partial / WEIGHTS)
        save_tensors(optimizer_tensors(self.optimizer), partial / MOMENTS)
        files = {name: digest_file(partial / name) for name in (WEIGHTS, MOMENTS)}
        (partial / STATE).write_text(json.dumps({"step": step, "objective": state, "files": files}))
        for path in [*partial.iterdir(), partial]:
            sync(path)
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
        sync(self.folder)
        for old in _newest_first(self.folder)[KEPT:]:
            shutil.rmtree(old)

    def restore(self) -> tuple[int, Mapping[str, Any] | None]:
        """Load the newest whole checkpoint: its step and objective state; (0, None) when there is none.

        A damaged one is passed over with a warning.
        """
        for folder in _newest_first(self.folder):
            try:
                return self._take_up(folder)
            except InputError as error:
                warn(f"{error} Falling back to the checkpoint before it.")
        return 0, None

    def _take_up(self, folder: Path) -> tuple[int, Mapping[str, Any]]:
        state = _read_state(folder)
        for name, sha256 in state["files"].items():
            if not (folder / name).is_file() or digest_file(folder / name) != sha256:
                raise InputError(f"The checkpoint {folder} is damaged: {name} is not what its state.json says.")
        weights, moments = load_tensors(folder / WEIGHTS), load_tensors(folder / MOMENTS)
        restore_modules(self.modules, weights, folder)
        restore_optimizer(self.optimizer, moments, folder)
        return int(state["step"]), state["objective"]


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*[0-9]"), reverse=True)


def saved_states(folder: Path) -> list[Mapping[str, Any]]:
    """The objective states of the readable checkpoints in a folder, newest first."""
    states = []
    for checkpoint in _newest_first(folder):
        try:
            states.append(_read_state(checkpoint)["objective"])
        except InputError:
            continue  # `restore` says so; nothing will go on from it
    return states


def _read_state(folder: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((folder / STATE).read_text())
        if set(state["files"]) != {WEIGHTS, MOMENTS} or not isinstance(state["objective"], dict):
            raise ValueError("it names other files than a checkpoint has")
        int(state["step"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"The checkpoint {folder} cannot be read ({error}).") from None
    return state


def module_tensors(modules: nn.Module) -> dict[str, Tensor]:
    """The weights once each: a shared tower or a tied decoder is not written twice."""
    seen: set[int] = set()
    tensors = {}
    for name, tensor in modules.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            tensors[name] = tensor.detach()
    return tensors


def restore_modules(modules: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Load what `module_tensors` gave. Raises InputError when a tensor is missing or misshapen."""
    own = module_tensors(modules)
    if set(own) != set(tensors) or any(own[name].shape != tensors[name].shape for name in own):
        raise InputError(f"The weights in {where} are not those of this model.")
    with torch.no_grad():
        for name, tensor in tensors.items():
            own[name].copy_(tensor)
