"""The options of `realmctl adapt`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.pipeline import setting
from realmctl.pipeline.sources import on_disk
from realmctl.shortcuts.documents_settings import DocumentsSettings


class AdaptSettings(DocumentsSettings):
    """What is adapted to which documents, in how many minutes. Rooms add options by subclasses (`realmctl.options.adapt`)."""

    minutes: float = setting(
        "Minutes in all. Training has what blocks, measurements and vectors leave.",
        default=30,
        at_least=0.01,
        at_most=1e6,
    )
    sentences: int = setting(
        "Sentences that are cut out of their blocks, to measure without labels.", default=1000, at_least=2
    )

    def adapt(self) -> dict[str, Any]:
        """Adapt, and return what was gained and how to search."""
        from realmctl.shortcuts.adapt import adapt

        with on_disk(self.documents, what="documents") as [documents]:
            return adapt(
                documents,
                self.encoder,
                self.workspace,
                self.variables(documents),
                minutes=self.minutes,
                sentences=self.sentences,
                held_out=self._held_out,
            )

    def _held_out(self, blocks: Artifact) -> Artifact | None:
        held_out = self.held_out(blocks)
        self.before_training(blocks, held_out)
        return held_out

    def held_out(self, blocks: Artifact) -> Artifact | None:
        """Questions of documents that training leaves out, by which it is measured. None: a room writes some."""
        return None

    def before_training(self, blocks: Artifact, held_out: Artifact | None) -> None:
        """Refuse here what training could learn nothing from. held_out: questions whose documents it leaves out."""

    def written(self, blocks: Artifact, sample: int, held_out: Artifact) -> Artifact | None:
        """Questions of so many blocks of other documents, in BEIR's layout, from which something may be learnt. None: a room writes some."""
        return None

    def told(self, found: Mapping[str, Any]) -> str:
        """Say it in plain words."""
        from realmctl.shortcuts.adapt import text_of

        return text_of(found)
