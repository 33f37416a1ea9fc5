"""`realmctl fill-mask`: predict the masked wordpieces of one sentence."""

from __future__ import annotations

from pathlib import Path

from realmctl.pipeline import InWorkspace, Show, argument, reads, setting
from realmctl.pipeline.workspace import default_series


class FillMask(InWorkspace):
    """Predict the [MASK]s of a sentence without retrieval, with each candidate, and with all (REALM's Table 3)."""

    computes = True

    sentence: str = argument("A sentence with one or more [MASK].")
    model: Path | None = reads("model", help="Default: <workspace>/model.", explicit_only=True, default=None)
    blocks: Path | None = reads("blocks", help="Default: <workspace>/blocks.", explicit_only=True, default=None)
    index: Path | None = reads(
        "index",
        help="Index to search. Default: the model's own, or the newest beside the blocks that fits newer blocks.",
        explicit_only=True,
        default=None,
    )
    candidates: int = setting("Number of candidates, including the null document.", default=8, at_least=2)

    def run(self, show: Show) -> None:
        from realmctl.retrieval.answering.pretrained_model import PretrainedModel

        model = self.model or default_series("fill-mask", "--model", "model", self.workspace / "model")
        filler = PretrainedModel.open(model, blocks=self.blocks or self.workspace / "blocks", index=self.index)
        show(filler.fill_mask(self.sentence, self.candidates), str)
