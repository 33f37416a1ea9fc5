"""`realmctl import-realm` and `realmctl import-table`: make artifacts of REALM's checkpoints, and of a table of texts and vectors."""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts import catalogue
from realmctl.artifacts.artifact import Artifact
from realmctl.pipeline import InWorkspace, Show, argument, help_texts, output, reads, runtime
from realmctl.pipeline import source as from_outside
from realmctl.pipeline.fields import MOST_WORKERS


class ImportRealm(InWorkspace):
    """Make artifacts of a REALM checkpoint of transformers.

    An embedder or a scorer becomes a retriever, an encoder an encoder, and a reader a span-reader. An open-QA checkpoint
    becomes blocks and a qa-model.
    """

    computes = True

    source: str = argument("Folder or hub id of a REALM checkpoint.")
    tokenizer: str | None = from_outside(
        "Folder or hub id of a tokenizer, if the checkpoint has none.", default=None, hub=True
    )
    titles: Path | None = from_outside("Open QA: text file with the title of one block on each line.", default=None)
    block_records: Path | None = from_outside(
        "Open QA: block_records.npy, if the checkpoint has none.", default=None, advanced=True
    )
    retriever: Path | None = reads(
        "retriever",
        help="Open QA: the imported embedder that made the index of the checkpoint.",
        explicit_only=True,
        default=None,
    )
    workers: int = runtime(help_texts.WORKERS, default=0, at_least=0, at_most=MOST_WORKERS)
    out: Path | None = output(help_texts.OUT, default=None, short="-o")

    def run(self, show: Show) -> None:
        from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint

        extras = ImportExtras(self.tokenizer, self.block_records, self.titles, self.retriever)
        _show(import_checkpoint(self.source, self.workspace, extras, self.workers, self.out), show)


class ImportTable(InWorkspace):
    """Make blocks and embeddings of a table of texts and vectors, as `export --form parquet` writes it."""

    computes = True

    table: Path = argument("Parquet or Arrow file with the columns id, text and vector.")
    retriever: Path | None = reads(
        "retriever", help="The retriever that made the vectors.", explicit_only=True, default=None
    )

    def run(self, show: Show) -> None:
        from realmctl.extras.hub.imports.table import import_table

        _show(import_table(self.table, self.retriever, self.workspace), show)


def _show(artifacts: dict[str, Artifact], show: Show) -> None:
    made = {kind: catalogue.summary(artifact) for kind, artifact in artifacts.items()}
    show({"made": made}, lambda value: "\n".join(entry["path"] for entry in value["made"].values()))
