"""The options of `realmctl adapt`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from realmctl.artifacts import Artifact
from realmctl.pipeline import InWorkspace, argument, help_texts, setting, source
from realmctl.pipeline.sources import on_disk


class AdaptSettings(InWorkspace):
    """What is adapted to which documents, in how many minutes. Rooms add options by subclasses (`realmctl.options.adapt`)."""

    computes = True

    documents: Path = argument(help_texts.DOCUMENTS)
    encoder: str | None = source(
        "Folder or hub id of a sentence encoder. " + help_texts.SENTENCE_ENCODER, default=None, hub=True
    )
    language: str = setting(help_texts.LANGUAGE, default="auto")
    bad_files: Literal["fail", "skip"] | None = setting(help_texts.BAD_FILES, default=None)
    minutes: float = setting(
        "Minutes in all. Training has what blocks, measurements and vectors leave.",
        default=30,
        at_least=0.01,
        at_most=1e6,
    )
    max_wordpieces: int | None = setting(help_texts.LONGEST_BLOCK, default=None, at_least=1)
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
                language=self.language,
                bad_files=self.bad_files,
                minutes=self.minutes,
                max_wordpieces=self.max_wordpieces,
                sentences=self.sentences,
                held_out=self.held_out,
            )

    def held_out(self, blocks: Artifact) -> Artifact | None:
        """Questions of documents that training leaves out, by which it is measured. None: a room writes some."""
        return None

    def told(self, found: Mapping[str, Any]) -> str:
        """Say it in plain words."""
        from realmctl.shortcuts.adapt import text_of

        return text_of(found)
