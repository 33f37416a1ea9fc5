"""The stages behind `realmctl import`, one for each kind of artifact.

As stages they have the usual recipes, locks and commits. They have no commands of their own: importing.py determines
the kind of a checkpoint and sets their fields. All tensors are checked before anything is written, so that a bad
checkpoint leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from realmctl.artifacts import Writer
from realmctl.artifacts.description import BLOCKS, BlocksDescription, write_description
from realmctl.errors import MismatchError
from realmctl.log import progress
from realmctl.pipeline import Stage, runtime, source

if TYPE_CHECKING:
    from realmctl.convert.imports.checkpoint import Checkpoint
    from realmctl.tokens.wordpiece import WordPiece


class Imported(Stage):
    """The base class of the stages below. It makes nothing itself."""

    makes = "nothing"
    checkpoint: tuple[Path, ...] = source("config.json and the weights.")
    tokenizer: tuple[Path, ...] = source("The files of the tokenizer.")

    @classmethod
    def command(cls) -> str:
        return "import"

    def opened(self) -> tuple[Checkpoint, WordPiece]:
        """Return the checkpoint and its tokenizer. Raises MismatchError when their vocabularies differ."""
        from realmctl.convert.imports.checkpoint import open_checkpoint
        from realmctl.convert.realm_weights import bert_config
        from realmctl.tokens import wordpiece

        checkpoint, folder = open_checkpoint(self.checkpoint[0].parent), self.tokenizer[0].parent
        words, rows = wordpiece.load(folder), bert_config(checkpoint).vocab_size
        if len(words) != rows or words.pad != 0:
            raise MismatchError(
                f"The tokenizer in {folder} has {len(words)} wordpieces, [PAD] being number {words.pad}, and the "
                f"checkpoint {checkpoint.folder} has {rows}, [PAD] being 0. Name the tokenizer it was trained with: "
                "--tokenizer bert-base-uncased."
            )
        return checkpoint, words


class ImportRetriever(Imported):
    """Import a published embedder or scorer as a retriever."""

    makes = "retriever"

    def check(self) -> None:
        from realmctl.convert.realm_weights import retriever_of

        retriever_of(self.opened()[0])

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.convert.realm_weights import retriever_of

        checkpoint, words = self.opened()
        retriever_of(checkpoint).save(out.path)
        words.save(out.path / "tokenizer")
        return {"wordpieces": len(words)}


class ImportEncoder(Imported):
    """Import a published knowledge-augmented encoder as a BERT with its head."""

    makes = "encoder"

    def check(self) -> None:
        from realmctl.convert.realm_weights import encoder_of

        encoder_of(self.opened()[0])

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.convert.realm_weights import encoder_of
        from realmctl.models.bert.files import save_masked_lm

        checkpoint, words = self.opened()
        save_masked_lm(encoder_of(checkpoint), out.path)
        words.save(out.path)
        return {"wordpieces": len(words)}


class ImportReader(Imported):
    """Import a published reader as a span reader."""

    makes = "span-reader"

    def check(self) -> None:
        from realmctl.convert.realm_weights import span_reader_of

        span_reader_of(self.opened()[0])

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.convert.realm_weights import span_reader_of

        checkpoint, words = self.opened()
        span_reader_of(checkpoint).save(out.path)
        words.save(out.path)
        return {"wordpieces": len(words)}


class ImportBlocks(Stage):
    """Import published block records, with their titles if a file of titles is passed."""

    makes = "blocks"
    version = 2
    records: Path = source("block_records.npy.")
    titles: Path | None = source("A text file with the title of one block on each line.", default=None)
    tokenizer: tuple[Path, ...] = source("The files of the tokenizer.")
    workers: int = runtime("Processes; 0 = all cores.", default=0)

    @classmethod
    def command(cls) -> str:
        return "import"

    def check(self) -> None:
        from realmctl.convert.imports.block_records import read_records

        read_records(self.records)

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.convert.imports.block_records import read_records
        from realmctl.convert.imports.foreign_blocks import blocks_of, foreign_blocks, prepare, units
        from realmctl.corpus.blocks_file import BlocksWriter
        from realmctl.execution.shards import map_units
        from realmctl.tokens import wordpiece

        folder = self.tokenizer[0].parent
        words = wordpiece.load(folder)
        words.save(out.path / "tokenizer")
        count, records = read_records(self.records)
        given = units(foreign_blocks(records, self.titles, count))
        with BlocksWriter(out.file, words.dtype) as writer, progress(count, "importing", "blocks") as bar:
            for blocks in map_units(blocks_of, given, self.workers, initializer=prepare, initargs=(folder,)):
                for block in blocks:
                    writer.write(block)
                bar.advance(len(blocks))
        write_description(out.file(BLOCKS), BlocksDescription(titles=self.titles is not None))
        return {"blocks": count}
