"""What every training stage has in common: it can be resumed, torchrun may start it, and `--dry-run` can try it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from realmctl.pipeline import Exchange, Stage, check_device, help_texts, runtime


class TrainingStage(Stage, abstract=True):
    """Base of the stages that train with `realmctl.training.loop`. They have the field `device`."""

    resumable = True
    parallel = True

    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)

    def together(self) -> AbstractContextManager[Exchange]:
        from realmctl.training.data_parallel import together

        return together(self.device)

    def trial(self) -> dict[str, float]:
        from realmctl.training.monitoring.trial import trial_of

        return trial_of(self.run, self.origin())


def retriever_lr_multiplier(lr: float, retriever_lr: float | None) -> float | None:
    """Return --retriever-lr divided by --lr, or None without --retriever-lr."""
    return None if retriever_lr is None else retriever_lr / lr
