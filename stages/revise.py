"""`realmctl revise`: the next version of blocks, after documents were added, changed or removed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from realmctl.artifacts import Artifact, Origin, Writer, tokenizer_folder
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.execution.shards import Executor
from realmctl.log import progress, warn
from realmctl.pipeline import Stage, help_texts, reads, runtime, source

if TYPE_CHECKING:
    from realmctl.corpus.chunking import ChunkedUnit, ChunkingSettings
    from realmctl.corpus.corpus import Corpus
    from realmctl.corpus.document import Document, SkippedPage

CHUNK_SETTINGS = (
    "max_wordpieces",
    "long_sentences",
    "long_titles",
    "sentence_splitter",
    "lowercase",
    "format",
    "keep_lists",
    "page_seconds",
    "keep_passages",
    "id_field",
    "title_field",
    "text_field",
)
FORMAT_DEFAULTS = (("keep_lists", False), ("format", "auto"))
NAMED_FIELDS = ("id_field", "title_field", "text_field")


class Revise(Stage):
    """Make the next version of blocks, after documents were added, changed or removed.

    --corpus names the whole corpus as it is now; --edits names only what changed. Tokenizer and settings are those of the
    blocks. The result has the same files as `chunk` of the new corpus, byte for byte. `embed --former` then takes over the
    vectors of the blocks that did not change.
    """

    makes = "blocks"
    headline = ("blocks", "blocks_kept", "documents_added", "documents_changed", "documents_removed")

    blocks: Artifact = reads("blocks", help="Blocks to revise, made by chunk or revise.", positional=True)
    corpus: tuple[Path, ...] = source("Files or folders with the whole corpus as it is now.", default=())
    edits: Path | None = source("JSON lines with the documents to add, update or remove.", default=None)
    workers: int = runtime(help_texts.WORKERS, default=0, at_least=0)
    executor: Executor = runtime(help_texts.EXECUTOR, default="local")

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
        origin = super().origin()
        inherited = {name: self.blocks.settings[name] for name in CHUNK_SETTINGS if name in self.blocks.settings}
        return dataclasses.replace(origin, settings={**origin.settings, **inherited})

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.artifacts.records import RecordWriter
        from realmctl.corpus.blocks_file import BlocksWriter
        from realmctl.corpus.corpus import Corpus
        from realmctl.corpus.stored_blocks import DocumentChanges
        from realmctl.tokens import wordpiece

        former, changes, quarantined = Corpus(self.blocks), DocumentChanges(Corpus(self.blocks)), 0
        out.copy_folder("tokenizer", tokenizer_folder(self.blocks))
        with (
            BlocksWriter(out.file, wordpiece.load(out.path).dtype) as blocks,
            RecordWriter(out.file("quarantine.jsonl.zst")) as quarantine,
            progress(None, "revise", "documents") as bar,
        ):
            for unit in self._rechunked(out) if self.corpus else self._edited(former, out):
                for block in unit.blocks:
                    blocks.write(block)
                    changes.add(block)
                for page in unit.quarantined:
                    warn(f"page {page.id} {page.title!r} is set aside: {page.reason}")
                    quarantine.write({"id": page.id, "title": page.title, "reason": page.reason})
                quarantined += len(unit.quarantined)
                bar.advance(unit.counts["documents"])
            if not blocks.count:
                raise InputError(
                    f"This revision of {self.blocks} would leave no block. Keep at least one document with text."
                )
        return {**changes.metrics(), **_sizes(out.path), "quarantined": quarantined}

    def _chunking(self, out: Writer) -> ChunkingSettings:
        from realmctl.corpus.chunking import ChunkingSettings

        settings = self.blocks.settings
        return ChunkingSettings(
            tokenizer=out.path / "tokenizer",
            splitter=settings.get("sentence_splitter", "rules"),
            max_wordpieces=settings["max_wordpieces"],
            long_sentences=settings.get("long_sentences", "split"),
            page_seconds=settings.get("page_seconds", 10.0),
            long_titles=settings.get("long_titles", "cut"),
            keep_passages=settings.get("keep_passages", False),
        )

    def _rechunked(self, out: Writer) -> Iterator[ChunkedUnit]:
        """Chunk the whole new corpus, as `chunk` does."""
        from realmctl.corpus.chunking import chunk_unit, prepare
        from realmctl.corpus.formats.records import FieldNames
        from realmctl.corpus.reading import PageCounts, documents
        from realmctl.corpus.work_units import units
        from realmctl.execution.shards import map_units

        keep_lists, format_name = (self.blocks.settings.get(name, default) for name, default in FORMAT_DEFAULTS)
        names = FieldNames(*(self.blocks.settings.get(name, "") for name in NAMED_FIELDS))
        pages = documents(self.corpus, PageCounts(), keep_lists, format_name, names)
        yield from map_units(
            chunk_unit,
            units(pages),
            self.workers,
            initializer=prepare,
            initargs=(self._chunking(out),),
            executor=self.executor,
        )

    def _edited(self, former: Corpus, out: Writer) -> Iterator[ChunkedUnit]:
        """Copy the blocks of documents without an edit, and chunk the others, one document in a unit."""
        from realmctl.corpus.chunking import ChunkedUnit, chunk_unit, prepare
        from realmctl.corpus.edits import apply_edits, read_edits
        from realmctl.corpus.stored_blocks import stored_documents

        assert self.edits is not None
        keep_lists = bool(self.blocks.settings.get("keep_lists", False))
        stored = {first.document: (first.title, rows) for first, rows in stored_documents(former)}
        titles = {name: title for name, (title, _) in stored.items()}
        documents = apply_edits(titles, read_edits(self.edits), keep_lists)
        yield ChunkedUnit(quarantined=list(_still_quarantined(former, documents)))
        prepare(self._chunking(out))
        for name, document in documents.items():
            if document is None:
                _, rows = stored[name]
                yield ChunkedUnit([former.block(row) for row in rows], counts=Counter(documents=1))
            else:
                yield _told(chunk_unit([document]), document)


def _told(unit: ChunkedUnit, document: Document) -> ChunkedUnit:
    if not unit.blocks:
        warn(f"{document.where}: document {document.id!r} has no text to keep, and so no block.")
    return unit


def _still_quarantined(former: Corpus, documents: Mapping[str, Any]) -> Iterator[SkippedPage]:
    from realmctl.artifacts.records import Records
    from realmctl.corpus.document import SkippedPage

    for record in Records(former.artifact.file("quarantine.jsonl.zst")):
        if record["id"] not in documents:
            yield SkippedPage(**record)


def _sizes(folder: Path) -> dict[str, Any]:
    """The metrics of `chunk` that describe the blocks themselves."""
    import numpy as np

    ends, uids = (np.load(folder / name, allow_pickle=False) for name in ("offsets.npy", "uids.npy"))
    return {
        "duplicate_blocks": len(uids) - len(np.unique(uids)),
        "wordpieces": int(ends[-1]),
        "mean_wordpieces": round(int(ends[-1]) / len(uids), 1),
        "longest_wordpieces": int(np.diff(ends).max()),
    }
