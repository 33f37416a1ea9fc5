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

from realmctl.artifact import sync
from realmctl.errors import InputError
from realmctl.hashing import digest_file
from realmctl.log import warn
from realmctl.nn.weights import load_tensors, optimizer_tensors, restore_optimizer, save_tensors

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
        for leftover in (partial, final):
            shutil.rmtree(leftover, ignore_errors=True)
        partial.mkdir()
        save_tensors(module_tensors(self.modules), partial / WEIGHTS)
        save_tensors(optimizer_tensors(self.optimizer), partial / MOMENTS)
        files = {name: digest_file(partial / name) for name in (WEIGHTS, MOMENTS)}
        (partial / STATE).write_text(json.dumps({"step": step, "objective": state, "files": files}))
        for path in [*partial.iterdir(), partial]:
            sync(path)
        partial.rename(final)
        sync(self.folder)
        for old in self._folders()[KEPT:]:
            shutil.rmtree(old)

    def restore(self) -> tuple[int, Mapping[str, Any] | None]:
        """Load the newest whole checkpoint: its step and objective state; (0, None) when there is none.

        A damaged one is passed over with a warning.
        """
        for folder in self._folders():
            try:
                return self._take_up(folder)
            except InputError as error:
                warn(f"{error} Falling back to the checkpoint before it.")
        return 0, None

    def _folders(self) -> list[Path]:
        return kept_in(self.folder)

    def _take_up(self, folder: Path) -> tuple[int, Mapping[str, Any]]:
        try:
            state = json.loads((folder / STATE).read_text())
            whole = all(digest_file(folder / name) == sha for name, sha in state["files"].items())
            step, objective = int(state["step"]), state["objective"]
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"The checkpoint {folder} cannot be read ({error}).") from None
        if not whole:
            raise InputError(f"The checkpoint {folder} is damaged: a hash does not hold.")
        restore_modules(self.modules, load_tensors(folder / WEIGHTS), folder)
        restore_optimizer(self.optimizer, load_tensors(folder / MOMENTS), folder)
        return step, objective


def kept_in(folder: Path) -> list[Path]:
    """The checkpoints in a folder, newest first."""
    return sorted(folder.glob("step-*[0-9]"), reverse=True)


def saved_states(folder: Path) -> list[Mapping[str, Any]]:
    """The objective states of the checkpoints in a folder, newest first."""
    return [json.loads((checkpoint / STATE).read_text())["objective"] for checkpoint in kept_in(folder)]


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
