"""Fine-tuning that keeps its best weights, by span exact match on development questions as in ORQA's trainer.

The best weights so far are in a folder that outlives a killed process. A run that continues from a checkpoint scores the
same steps again; equal scores change nothing, so it ends with the weights of a run that never stopped.

Both files carry a hash. When they are damaged, a checkpoint that was written after the first score cannot be continued,
because the best weights before it are lost. The run falls back to a checkpoint before the first score, or to the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol

import torch
from torch import Tensor

from realmctl.artifacts.disk import QUARANTINE, set_aside, sync
from realmctl.artifacts.hashing import digest_file, read_sealed, write_sealed
from realmctl.errors import InputError, as_realmctl_error
from realmctl.execution import processes
from realmctl.log import say
from realmctl.models.precision import autocast
from realmctl.models.weights import load_tensors, save_tensors
from realmctl.questions.questions import Question
from realmctl.training import data_parallel
from realmctl.training.checkpoint import module_tensors, restore_modules
from realmctl.training.objective import Objective, Part, SelfContained, Sums
from realmctl.training.settings import FinetuneSettings

FOLDER, BEST = "best", "best.json"
AGAIN = "A run of the same command goes on from a point before the first score on dev."


def best_step(folder: Path) -> int:
    """Return the step of the best weights in a folder; 0 when there are none, or best.json is damaged."""
    try:
        return int(read_sealed(folder / BEST)["step"])
    except (OSError, ValueError):
        return 0


class Reading(Objective[Part], Protocol[Part]):
    """An objective that reads questions. Its metrics have `span_exact_match`."""

    questions: list[Question]

    def parts(self, numbers: list[int], questions_in_batch: int) -> Sequence[Part]:
        """Return micro-batches of these questions, by number."""
        ...


class BestOnDev(SelfContained, Generic[Part]):
    """The objective `tuning`, scored every `dev_every` steps on the questions of `dev`, an objective on the same modules.

    Its best weights and their score are in `folder`.
    """

    def __init__(self, tuning: Objective[Part], dev: Reading[Part], settings: FinetuneSettings, folder: Path) -> None:
        self.tuning, self.dev, self.modules, self.lr_multipliers = tuning, dev, tuning.modules, tuning.lr_multipliers
        self.chance, self.chance_is_exact = tuning.chance, tuning.chance_is_exact
        self.settings, self.folder = settings, folder
        if processes.is_first():
            self._set_damaged_files_aside()

    def draw(self, step: int) -> Sequence[Part]:
        return self.tuning.draw(step)

    def loss(self, part: Part) -> tuple[Tensor | None, Sums]:
        return self.tuning.loss(part)

    def state(self) -> dict[str, Any]:
        """Return whether a step was scored before the checkpoint: `restore` needs the best weights then."""
        return {"scored": bool(self.best())}

    def restore(self, state: Mapping[str, object]) -> None:
        """Check that the best weights so far are there.

        Raises:
            InputError: A step was scored before the checkpoint, and its weights were damaged or are missing.
        """
        if state["scored"] and not self.best():
            raise InputError(f"The best weights before this checkpoint are not in {self.folder}.")

    def before_step(self, step: int) -> Mapping[str, float]:
        """Every `dev_every` steps, score the weights after `step` steps."""
        logged = self.tuning.before_step(step)
        return (
            {**logged, "dev_span_exact_match": self.measure(step)}
            if step and step % self.settings.dev_every == 0
            else logged
        )

    def after_step(self, line: Mapping[str, object]) -> Mapping[str, Any]:
        return self.tuning.after_step(line)

    def measure(self, step: int) -> float:
        """Score the weights, and keep them if they are better than all earlier ones."""
        score = self._span_exact_match()
        if processes.is_first() and score > self.best().get("score", -1.0):
            self._keep(step, score)
        return score

    def take(self, step: int) -> dict[str, float]:
        """Called after the last step: load the best weights into the modules, and return their step and score.

        Raises:
            InputError: The files of the best weights are damaged. The same command continues the run without them.
        """
        score = self.measure(step)
        if not processes.is_first():  # the first process writes the artifact
            return {"best_dev_span_exact_match": score}
        best = self._checked_best()
        weights = self._weights(best["step"])
        restore_modules(self.modules, load_tensors(weights), weights)
        say(f"finetune: the best of {step} steps on dev is step {best['step']}, span exact match {best['score']:.4f}")
        return {"best_step": best["step"], "best_dev_span_exact_match": round(best["score"], 6)}

    def best(self) -> dict[str, Any]:
        """`step` and `score` of the best so far, and the SHA-256 of its weights; empty before the first.

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

    def _checked_best(self) -> dict[str, Any]:
        """Return `best()` after a check of the weights. Raises InputError when one of the two files is damaged."""
        best = self.best()
        if best:
            weights = self._weights(best["step"])
            if not weights.is_file() or digest_file(weights) != best["sha256"]:
                raise InputError(f"{weights} is missing or does not have the hash in {BEST}. {AGAIN}")
        return best

    def _set_damaged_files_aside(self) -> None:
        """Move files of an earlier process that are damaged to the quarantine folder, with a warning."""
        try:
            self._checked_best()
        except InputError as error:
            for path in [self.folder / BEST, *self.folder.glob("step-*")]:
                set_aside(path, self.folder.parent / QUARANTINE, str(error))

    def _keep(self, step: int, score: float) -> None:
        """Flush the weights to the disk, then name them in best.json, then delete the previous ones."""
        partial, final = self.folder / "partial", self._weights(step)
        save_tensors(module_tensors(self.modules), partial)
        sync(partial)
        partial.rename(final)
        write_sealed(self.folder / BEST, {"step": step, "score": score, "sha256": digest_file(final)})
        for other in self.folder.glob("step-*"):
            if other != final:
                other.unlink()

    def _weights(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}.safetensors"

    @torch.no_grad()
    def _span_exact_match(self) -> float:
        """The share of the questions whose best span is an answer. Each process reads a part of the questions."""
        training, right, count = self.modules.training, 0.0, 0.0
        self.modules.eval()
        size = self.settings.batch_size
        for start in range(0, len(self.dev.questions), size):
            numbers = list(range(start, min(start + size, len(self.dev.questions))))
            own = numbers[processes.rank() :: processes.world_size()]
            with autocast(next(self.modules.parameters()).device, self.settings.precision):
                for part in self.dev.parts(own or numbers[:1], len(numbers)):  # all processes search together
                    matches, questions = self.dev.loss(part)[1]["span_exact_match"]
                    right, count = (right + float(matches), count + float(questions)) if own else (right, count)
        self.modules.train(training)
        found = data_parallel.exchange([right, count])
        return float(sum(matches for matches, _ in found) / sum(questions for _, questions in found))
