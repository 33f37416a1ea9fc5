"""`realmctl adapt`: adapt a retriever to documents without labels, and make them searchable."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from realmctl.pipeline import InWorkspace, Show, argument, help_texts, setting, source


class Adapt(InWorkspace):
    """Adapt a sentence encoder to documents without labels, and make them searchable. The encoder is kept where no gain is shown.

    The same as `import`, `chunk`, `ict-init`, `eval-cloze`, `embed` and `build-index`. It ends by saying what was gained and how to
    search. After an interruption the same command goes on; a second run finds everything made.
    """

    computes = True

    documents: Path = argument("Folder or file of documents, in any format that `chunk` reads.")
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
    max_wordpieces: int = setting(
        "Longest block in wordpieces, with its title and special tokens.", default=128, at_least=1
    )
    sentences: int = setting(
        "Sentences that are cut out of their blocks, to measure without labels.", default=1000, at_least=2
    )

    def run(self, show: Show) -> None:
        from realmctl.shortcuts import adapt as shortcut

        found = shortcut.adapt(
            self.documents,
            self.encoder,
            self.workspace,
            language=self.language,
            bad_files=self.bad_files,
            minutes=self.minutes,
            max_wordpieces=self.max_wordpieces,
            sentences=self.sentences,
        )
        show(found, shortcut.text_of)
