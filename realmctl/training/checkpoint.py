"""Checkpoints of a training run: folders that appear by one rename, and whose files are checked by hash when read.

step-00000500/modules.safetensors     weights
step-00000500/optimizer.safetensors   state of the optimizer
step-00000500/metrics.jsonl           the metrics of all steps up to this one
step-00000500/state.json              step, state of the objective, hashes of the other files, and a hash of itself
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from realmctl.artifacts.disk import QUARANTINE, set_aside, sync
from realmctl.artifacts.hashing import digest_file, read_sealed, write_sealed
from realmctl.errors import InputError, as_realmctl_error
from realmctl.log import warn
from realmctl.models.optimizer import BertAdamW
from realmctl.models.weights import load_tensors, save_tensors

KEPT = 2
WEIGHTS, MOMENTS, METRICS, STATE = "modules.safetensors", "optimizer.safetensors", "metrics.jsonl", "state.json"


@dataclass(frozen=True)
class Checkpoints:
    """The newest two checkpoints of one run, in `folder`, and the newest sound one, from before the loss left its range.

    `metrics` is the run's `metrics.jsonl`.
    """

    folder: Path
    modules: nn.Module
    optimizer: BertAdamW
    metrics: Path

    def largest_bytes(self) -> int:
        """Return the bytes on disk while one checkpoint more than is kept is being written: weights and two moments of each."""
        weights = module_tensors(self.modules).values()
        return (KEPT + 2) * sum(tensor.nbytes * (3 if tensor.is_floating_point() else 1) for tensor in weights)

    def save(self, step: int, state: Mapping[str, object], sound: bool = True) -> None:
        """Write the checkpoint of `step` durably, then delete all but the newest two checkpoints and the newest sound one.

        Args:
            step: Number of steps taken so far.
            state: JSON state of the objective.
            sound: Whether the loss is in its range.

        Raises:
            ResourceError: The disk is full. The checkpoints before this one are kept.
        """
        final = self.folder / f"step-{step:08d}"
        partial = final.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        try:
            self._write(partial, step, state, sound)
        except Exception as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise as_realmctl_error(error, partial) or error from None
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
        sync(self.folder)
        sound_step = newest_sound(self.folder)
        for old in _newest_first(self.folder)[KEPT:]:
            if step_of(old) != sound_step:
                shutil.rmtree(old)

    def restore(self, restore_objective: Callable[[Mapping[str, Any]], None], step: int | None = None) -> int:
        """Load the newest checkpoint that is whole and that the objective can restore.

        An unusable checkpoint is moved to the quarantine folder with a warning, and the one before it is tried.
        Without a usable checkpoint, `metrics.jsonl` is emptied and training starts from the beginning.

        Args:
            restore_objective: Restores the objective from its saved state. It raises InputError when a file
                that the state names is gone or damaged.
            step: Load only the checkpoint of this step and move nothing. For the processes other than the first.

        Returns:
            The step of the checkpoint, 0 when there is none.
        """
        fell_back = False
        for folder in _newest_first(self.folder):
            if step is not None and folder.name != f"step-{step:08d}":
                continue
            try:
                return self._load(folder, restore_objective)
            except InputError as error:
                if step is not None:
                    break
                set_aside(folder, self.folder.parent / QUARANTINE, f"{error} Falling back to the checkpoint before it.")
                fell_back = True
        if fell_back:
            warn(f"no checkpoint in {self.folder} can be used; training starts from the beginning")
        self.metrics.write_bytes(b"")
        return 0

    def _write(self, partial: Path, step: int, state: Mapping[str, object], sound: bool) -> None:
        partial.mkdir()
        save_tensors(module_tensors(self.modules), partial / WEIGHTS)
        save_tensors(self.optimizer.tensors(), partial / MOMENTS)
        shutil.copyfile(self.metrics, partial / METRICS)
        files = {name: digest_file(partial / name) for name in (WEIGHTS, MOMENTS, METRICS)}
        write_sealed(partial / STATE, {"step": step, "objective": state, "sound": sound, "files": files})
        for path in [*partial.iterdir(), partial]:
            sync(path)

    def _load(self, folder: Path, restore_objective: Callable[[Mapping[str, Any]], None]) -> int:
        state = _read_state(folder)
        for name, sha256 in state["files"].items():
            if not (folder / name).is_file() or digest_file(folder / name) != sha256:
                raise InputError(
                    f"The checkpoint {folder} is damaged: {name} does not have the hash in its state.json."
                )
        weights, moments = load_tensors(folder / WEIGHTS), load_tensors(folder / MOMENTS)
        restore_objective(state["objective"])  # first, because it can fail and must leave the initial weights then
        restore_modules(self.modules, weights, folder)
        self.optimizer.restore(moments, folder)
        self._restore_metrics(folder / METRICS)
        return int(state["step"])

    def _restore_metrics(self, saved: Path) -> None:
        """Replace `metrics.jsonl` by the copy in the checkpoint. Later lines are written again with their steps."""
        lines = saved.read_bytes()
        if self.metrics.is_file() and not self.metrics.read_bytes().startswith(lines):
            reason = f"{self.metrics} is damaged: it does not begin with the metrics that {saved} holds."
            set_aside(self.metrics, self.folder.parent / QUARANTINE, reason)
        self.metrics.write_bytes(lines)


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*[0-9]"), reverse=True)


def step_of(folder: Path) -> int:
    """Return the number of steps before a checkpoint, from the name of its folder."""
    return int(folder.name.removeprefix("step-"))


def newest_sound(folder: Path, before: float = math.inf) -> int:
    """Return the step of the newest checkpoint from before the loss left its range, 0 when there is none before this step."""
    for checkpoint in _newest_first(folder):
        try:
            if step_of(checkpoint) < before and _read_state(checkpoint)["sound"]:
                return step_of(checkpoint)
        except InputError:
            continue  # `restore` reports it and does not use it
    return 0


def remove_later(folder: Path, step: int) -> None:
    """Remove the checkpoints of later steps than `step`."""
    for later in (each for each in _newest_first(folder) if step_of(each) > step):
        shutil.rmtree(later)


def saved_states(folder: Path) -> list[Mapping[str, Any]]:
    """Return the objective states of the readable checkpoints in a folder, the newest first."""
    states = []
    for checkpoint in _newest_first(folder):
        try:
            states.append(_read_state(checkpoint)["objective"])
        except InputError:
            continue  # `restore` reports it and does not use it
    return states


def _read_state(folder: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = read_sealed(folder / STATE)
    except (OSError, ValueError) as error:
        raise as_realmctl_error(error, folder) or InputError(
            f"The checkpoint {folder} cannot be read ({error})."
        ) from None
    return state


def module_tensors(modules: nn.Module) -> dict[str, Tensor]:
    """Return {name: tensor} with every weight once: a shared tower or a tied decoder has only its first name."""
    seen: set[int] = set()
    tensors = {}
    for name, tensor in modules.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            tensors[name] = tensor.detach()
    return tensors


def restore_modules(modules: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Copy what `module_tensors` returned into `modules`.

    Raises:
        InputError: A tensor is missing, extra or of another shape. No weight has been changed then.
    """
    own = module_tensors(modules)
    if set(own) != set(tensors) or any(own[name].shape != tensors[name].shape for name in own):
        raise InputError(f"The weights in {where} are not those of this model.")
    with torch.no_grad():
        for name, tensor in tensors.items():
            own[name].copy_(tensor)
