"""The best weights of a run so far, in a folder that outlives a killed process.

A run that continues from a checkpoint scores the same steps again; equal scores change nothing, so it ends with the weights of a run that
never stopped.

Both files carry a hash. When they are damaged, a checkpoint that was written after the first score cannot be continued,
because the best weights before it are lost. The run falls back to a checkpoint before the first score, or to the beginning.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from realmctl.artifacts.disk import QUARANTINE, set_aside, sync
from realmctl.artifacts.hashing import digest_file, read_sealed, write_sealed
from realmctl.errors import InputError, as_realmctl_error
from realmctl.execution import processes
from realmctl.models.weights import load_tensors, save_tensors
from realmctl.training.checkpoint import module_tensors, restore_modules
from realmctl.training.objective import Observer

FOLDER, BEST = "best", "best.json"
AGAIN = "A run of the same command goes on from a point before the first score."


def best_step(folder: Path) -> int:
    """Return the step of the best weights in a folder; 0 when there are none, or best.json is damaged."""
    try:
        return int(read_sealed(folder / BEST)["step"])
    except (OSError, ValueError):
        return 0


class BestWeights:
    """The best weights of `modules` in `folder`, with their step and score. The first process writes them.

    Damaged files of an earlier process are moved to the quarantine folder, with a warning.
    """

    def __init__(self, folder: Path, modules: nn.Module) -> None:
        self.folder, self.modules = folder, modules
        if processes.is_first():
            try:
                self._checked()
            except InputError as error:
                for path in [folder / BEST, *folder.glob("step-*")]:
                    set_aside(path, folder.parent / QUARANTINE, str(error))

    def best(self) -> dict[str, Any]:
        """`step` and `score` of the best so far, what else was kept with it, and the SHA-256 of its weights; empty before the first.

        Raises:
            InputError: best.json is damaged.
        """
        path = self.folder / BEST
        try:
            found: dict[str, Any] = read_sealed(path)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise as_realmctl_error(error, path) or InputError(f"{path} is damaged ({error}). {AGAIN}") from None
        return found

    def offer(self, step: int, score: float, **more: Any) -> None:
        """Keep the weights if they are better than all earlier ones. `more`: JSON values to keep with them."""
        if not processes.is_first() or score <= self.best().get("score", -1.0):
            return
        partial, final = self.folder / "partial", self._weights(step)  # flushed to the disk, then named in best.json
        save_tensors(module_tensors(self.modules), partial)
        sync(partial)
        partial.rename(final)
        write_sealed(self.folder / BEST, {"step": step, "score": score, **more, "sha256": digest_file(final)})
        for other in self.folder.glob("step-*"):
            if other != final:
                other.unlink()

    def require(self, scored: bool) -> None:
        """Check before a checkpoint is continued that the best weights are there, if a step before it was scored.

        Raises:
            InputError: They were damaged or are missing.
        """
        if scored and not self.best():
            raise InputError(f"The best weights before this checkpoint are not in {self.folder}.")

    def take(self) -> dict[str, Any]:
        """Load the best weights into the modules, and return what `best` returns. For the first process.

        Raises:
            InputError: The files are damaged. The same command continues the run without them.
        """
        best = self._checked()
        weights = self._weights(best["step"])
        restore_modules(self.modules, load_tensors(weights), weights)
        return best

    def _checked(self) -> dict[str, Any]:
        """Return `best()` after a check of the weights. Raises InputError when one of the two files is damaged."""
        best = self.best()
        if best:
            weights = self._weights(best["step"])
            if not weights.is_file() or digest_file(weights) != best["sha256"]:
                raise InputError(f"{weights} is missing or does not have the hash in {BEST}. {AGAIN}")
        return best

    def _weights(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}.safetensors"


class KeepsBest(Observer):
    """An observer that measures the weights every `every` steps and after the last, and keeps the best of them.

    Args:
        every: Steps between two measurements.
        modules: What is kept.
        folder: Where it is kept; None to keep the weights of the last step.
    """

    def __init__(self, every: int, modules: nn.Module, folder: Path | None) -> None:
        self.every, self.weights = every, BestWeights(folder, modules) if folder else None
        self.at_last: Mapping[str, Any] = {}
        """What `measure` found after the last step."""

    @abstractmethod
    def measure(self, step: int) -> Mapping[str, Any]:
        """Measure the weights after `step` steps, and offer them to `weights`. Returns metrics."""

    def before_step(self, step: int) -> Mapping[str, Any]:
        """Measure where it is due."""
        return {} if step % self.every else self.measure(step)

    def at_end(self, step: int) -> Mapping[str, Any]:
        """Measure the weights after the last step."""
        self.at_last = self.measure(step)
        return self.at_last

    def offer(self, step: int, score: float, **more: Any) -> None:
        """Keep the weights if they are better than all earlier ones. `more`: JSON values to keep with them."""
        if self.weights is not None:
            self.weights.offer(step, score, **more)

    def best(self) -> dict[str, Any] | None:
        """Load the best weights into the modules, after the last step, and return what was kept with them.

        None in other processes than the first, which writes the artifact, and where the weights of the last step are kept.

        Raises:
            InputError: The files are damaged. The same command continues the run without them.
        """
        return self.weights.take() if self.weights is not None and processes.is_first() else None

    def require_best(self, measured: bool) -> None:
        """Check before a checkpoint is continued that the best weights are there, if a step before it was `measured`. Raises InputError."""
        if self.weights is not None:
            self.weights.require(measured)
