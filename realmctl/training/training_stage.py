"""What every training stage has in common: it can be resumed, torchrun may start it, and `--dry-run` can try it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from realmctl.errors import ConfigError
from realmctl.pipeline import Exchange, Stage, help_texts, runtime


class TrainingStage(Stage, abstract=True):
    """Base of the stages that train with `realmctl.training.loop`. They have the field `device`."""

    resumable = True
    parallel = True

    device: str = runtime(help_texts.DEVICE, default="auto")

    def together(self) -> AbstractContextManager[Exchange]:
        from realmctl.training.data_parallel import together

        return together(self.device)

    def trial(self) -> dict[str, float]:
        from realmctl.training.monitoring.trial import trial_of

        return trial_of(self.run, self.origin())


def retriever_lr_multiplier(lr: float, retriever_lr: float | None) -> float | None:
    """Return --retriever-lr divided by --lr, or None without --retriever-lr. Raises ConfigError unless both are above 0."""
    if not lr > 0 or not (retriever_lr is None or retriever_lr > 0):
        raise ConfigError(
            f"--lr {lr:g} and --retriever-lr {lr if retriever_lr is None else retriever_lr:g} must be above 0."
        )
    return None if retriever_lr is None else retriever_lr / lr


def require_dropout(rate: float | None) -> None:
    """Raise ConfigError unless --dropout is None, or from 0 to below 1."""
    if rate is not None and not 0 <= rate < 1:
        raise ConfigError(f"--dropout {rate:g} must be from 0 to below 1.")


def require_layer_decay(decay: float) -> None:
    """Raise ConfigError unless --layer-decay is above 0 and at most 1."""
    if not 0 < decay <= 1:
        raise ConfigError(f"--layer-decay {decay:g} must be above 0 and at most 1.")
