"""`realmctl index-docs`: make a folder of documents searchable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from realmctl import log
from realmctl.pipeline import Show
from realmctl.pipeline.sources import on_disk
from realmctl.shortcuts.documents_settings import DocumentsSettings


class IndexDocs(DocumentsSettings):
    """Make documents searchable with an imported encoder: blocks, their vectors and an index, without training.

    The same as `import`, `chunk`, `embed` and `build-index`. After an interruption the same command goes on; a second run finds
    everything made, and after documents changed it embeds what changed. Then `realmctl search` searches.
    """

    def run(self, show: Show) -> None:
        from realmctl.retrieval.search.methods import keep_bm25
        from realmctl.shortcuts import shipped
        from realmctl.shortcuts.changes import changes, searched_before

        with on_disk(self.documents, what="documents") as [documents]:
            start = self.encoder or shipped.default_encoder([documents], self.language)
            former = searched_before(self.workspace)
            before = {*(self.workspace / "embeddings").glob("v*")}
            with log.one_bar("index-docs"):
                made = shipped.run_shipped("index-docs", self.workspace, start, self.variables(documents))
            keep_bm25(made["blocks"])
            counts, vectors = made["blocks"].metrics, made["embeddings"]
            show(
                {
                    "documents": counts["documents"],
                    "blocks": counts["blocks"],
                    "left_out": shipped.left_out(made["blocks"]),
                    "changes": changes(former, made["blocks"]),
                    "embedded": 0 if vectors.path in before else vectors.metrics.get("embedded", counts["blocks"]),
                    "made": {name: str(artifact.path) for name, artifact in made.items()},
                    "search": shipped.search_command(made["index"], self.workspace),
                },
                lambda found: (
                    f"{found['blocks']:,} blocks of {found['documents']:,} documents can be searched"
                    f"{shipped.left_out_text(made['blocks'])}.{_changes_text(found)} Now: {found['search']}"
                ),
            )


def _changes_text(found: Mapping[str, Any]) -> str:
    """What a run changed, as a sentence; empty for the first."""
    if (counts := found["changes"]) is None:
        return ""
    if not any(counts.values()):
        return " No document changed."
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    return f" Documents: {told}; vectors: {found['embedded']:,} new, {found['blocks'] - found['embedded']:,} kept."
