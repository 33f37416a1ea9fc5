"""What distillation adds to `pretrain`."""

from __future__ import annotations

from realmctl.errors import ConfigError
from realmctl.pipeline import setting
from realmctl.training.settings.pretrain import PretrainSettings

LOSSES = ("distill", "replug")
DISTILLS = "|".join(f"retriever_loss={name}" for name in LOSSES)


class DistillationOptions(PretrainSettings):
    """REALM pre-training whose retriever learns the reader's choice."""

    reader_temperature: float = setting(
        "what the reader's mean log-likelihoods are divided by. REPLUG has 0.1, Atlas 0.01.",
        default=0.1,
        above=0,
        at_most=1e6,
        used_with=DISTILLS,
        left_out_at=0.1,
        advanced=True,
    )

    def check(self) -> None:
        super().check()
        if self.retriever_loss in LOSSES and self.marginal == "token":
            raise ConfigError(
                f"--marginal token is for --retriever-loss marginal: {self.retriever_loss} compares whole spans."
            )

    @property
    def per_token(self) -> bool:
        return super().per_token and self.retriever_loss not in LOSSES
