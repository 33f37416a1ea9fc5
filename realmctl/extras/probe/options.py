"""What a probe adds to `ask`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from realmctl.pipeline import reads
from realmctl.retrieval.answering.settings import AskSettings

if TYPE_CHECKING:
    from realmctl.retrieval.answering.qa_model import AnsweredQuestion


class ProbeOptions(AskSettings):
    """A question whose best answer another model is asked for, without any document."""

    probe: Path | None = reads(
        "model",
        "qa-model",
        help="Model that says how probable the answer is without any document: pre-trained, or a closed-book qa-model.",
        explicit_only=True,
        default=None,
    )

    def answer(self) -> AnsweredQuestion:
        asked = super().answer()
        if self.probe is None:
            return asked
        from realmctl.extras.probe.probing import probed

        return probed(asked, self.probe, self.blocks or self.workspace / "blocks")
