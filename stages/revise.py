"""`realmctl revise`: the next version of blocks, after documents were added, changed or removed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from realmctl.artifacts import Artifact, Origin, Writer, newest_version
from realmctl.artifacts.series import is_newest, require_newest
from realmctl.corpus.settings import ChunkSettings, language_of
from realmctl.errors import ConfigError, MismatchError
from realmctl.execution.shards import LOCAL, executor_names
from realmctl.log import warn
from realmctl.pipeline import Stage, help_texts, reads, runtime, source
from realmctl.pipeline.fields import MOST_WORKERS
from realmctl.pipeline.trial import NotTried, Trial


class Revise(Stage):
    """Make the next version of blocks, after documents were added, changed or removed.

    --corpus names the whole corpus as it is now; --edits names only what changed. Tokenizer and settings are those of the
    blocks. The result has the same files as `chunk` of the new corpus, byte for byte. `embed --former` then reuses the
    vectors of the blocks that did not change.
    """

    makes = "blocks"
    headline = ("blocks", "blocks_kept", "documents_added", "documents_changed", "documents_removed")

    blocks: Artifact = reads("blocks", help="Blocks to revise, made by chunk or revise.", positional=True)
    corpus: tuple[Path, ...] = source("Files or folders with the whole corpus as it is now.", default=())
    edits: Path | None = source("JSON lines with the documents to add, update or remove.", default=None)
    workers: int = runtime(help_texts.WORKERS, default=0, at_least=0, at_most=MOST_WORKERS)
    executor: str = runtime(help_texts.EXECUTOR, default=LOCAL, choices=executor_names)

    def check(self) -> None:
        if bool(self.corpus) == (self.edits is not None):
            raise ConfigError("revise needs either --corpus, the whole corpus as it is now, or --edits, what changed.")
        if "max_wordpieces" not in self.blocks.settings or not self.blocks.has("quarantine.jsonl.zst"):
            raise MismatchError(
                f"{self.blocks} was not made by chunk or revise, so it is not known how to cut further documents alike. "
                "Chunk the new corpus with its tokenizer: realmctl chunk --tokenizer."
            )
        if self.blocks.settings.get("sentence_splitter") == "punkt":
            raise ConfigError(
                f"{self.blocks} was cut with a Punkt model, which blocks do not hold. Chunk the new corpus with "
                "--sentence-splitter punkt:FOLDER and --tokenizer, and use embed --former as after a revision."
            )

    def origin(self) -> Origin:
        """Return the origin, with the settings of the blocks among its own, so that the next revision finds them."""
        origin, inherited = super().origin(), self._chunk_settings()
        return dataclasses.replace(origin, settings={**origin.settings, **vars(inherited)})

    def _chunk_settings(self) -> ChunkSettings:
        return ChunkSettings.of({**self.blocks.settings, "language": language_of(self.blocks)})

    def trial(self) -> Trial:
        raise NotTried("how many documents changed is known when all of them are read")

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.corpus.revising import revise_blocks

        self._check_newest(out.path.parent)
        return revise_blocks(
            self.blocks,
            self._chunk_settings(),
            self.corpus,
            self.edits,
            out,
            self.workers,
            self.executor,
        )

    def find(self, out: Path, origin: Origin) -> Artifact | None:
        made = super().find(out, origin)
        if made and not is_newest(made):
            self._check_newest(out)
        return made

    def _check_newest(self, out: Path) -> None:
        """Compare the blocks with the newest version of their series, whose lock is held. A whole corpus leaves nothing behind."""
        series = self.blocks.path.absolute().parent
        if self.edits is None or series != out.absolute():
            return
        if self.blocks.named_as_newest:
            require_newest(self.blocks)
        elif (newest := newest_version(series)).name != self.blocks.path.name:
            warn(f"{self.blocks.path} is not the newest version: this revision lacks what {newest} changed")
