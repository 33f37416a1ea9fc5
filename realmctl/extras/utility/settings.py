"""Settings of `eval-utility`."""

from __future__ import annotations

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError
from realmctl.pipeline import Precision, Settings, check_device, help_texts, reads, runtime, setting
from realmctl.training.settings.pretrain import PretrainSettings


class UtilitySettings(Settings):
    """Measuring retrieval utility. Rooms add options to `eval-utility` by subclasses (`realmctl.options.eval-utility`)."""

    model: Artifact | None = reads(
        "model",
        help="Pre-trained model to measure.",
        replaced_by=("retriever", "index", "encoder"),
        default=None,
    )
    spans: Artifact = reads("spans", help="Tagged sentences to measure on. Choose sentences that were not trained on.")
    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact | None = reads(
        "retriever", help="Retriever to use instead of the model's.", explicit_only=True, default=None
    )
    index: Artifact | None = reads(
        "index", help="Index to use instead of the model's.", instead_of="model", default=None
    )
    encoder: Artifact | None = reads(
        "encoder",
        "reader",
        help="Encoder to read with, instead of the model's reader.",
        explicit_only=True,
        default=None,
        advanced=True,
    )
    candidates: int = setting("Candidates per query, the null document included.", default=8, at_least=2)
    queries: int = setting("Spans to measure, drawn at random. 0 measures all of them.", default=0, at_least=0)
    batch_size: int = runtime("Sentences per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Precision = setting(help_texts.PRECISION, default="auto", advanced=True)

    def parts(self) -> tuple[Artifact, Artifact, Artifact]:
        """Retriever, index and reader: those that are named, or else those of the model.

        Raises:
            ConfigError: There is no model, and one of the three is not named.
        """
        model, retriever, index, reader = self.model, self.retriever, self.index, self.encoder
        if model is not None:
            return (
                retriever or model.part("retriever"),
                index or model.part("index"),
                reader or model.part("reader"),
            )
        if not (retriever and index and reader):
            raise ConfigError("eval-utility needs --model, or --retriever, --index and --encoder together.")
        return retriever, index, reader

    def pretraining(self) -> PretrainSettings:
        """The settings of a pre-training with these parts, whose queries are measured. Raises what `parts` raises."""
        retriever, index, reader = self.parts()
        return PretrainSettings(
            spans=self.spans,
            blocks=self.blocks,
            retriever=retriever,
            index=index,
            encoder=reader,
            candidates=self.candidates,
            batch_size=self.batch_size,
            device=self.device,
            precision=self.precision,
            marginal="token",
        )
