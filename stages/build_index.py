"""`realmctl build-index`: build an index over the embeddings and measure its recall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from realmctl.artifacts import Artifact, Writer
from realmctl.index.names import INDEX_TYPES
from realmctl.pipeline import Stage, check_device, reads, runtime, setting

if TYPE_CHECKING:
    from realmctl.index.index_type import IndexOptions


class BuildIndex(Stage):
    """Build an index over the embeddings.

    The recall of an approximate index is measured against exact search on sampled queries. An index below --min-recall
    is not written.
    """

    makes = "index"
    headline = ("recall", "rows", "ef")

    embeddings: Artifact = reads("embeddings", help="Embeddings to build the index over.")
    type: str = setting(
        "Type of index. hnsw: approximate graph search, fast. exact: scores every block. Other names come from plug-ins.",
        default="hnsw",
        choices=INDEX_TYPES.names,
    )
    m: int = setting("hnsw: links per vector. More links raise recall and memory.", default=16, at_least=2, at_most=512)
    ef_construction: int = setting(
        "hnsw: width of the beam during the build. A wider beam is slower and raises recall.", default=200, at_least=1
    )
    ef: int | None = setting(
        "hnsw: width of the beam during search. Default: the narrowest of 64 to 1024 that reaches --min-recall.",
        default=None,
        at_least=1,
    )
    recall_k: int = setting("Number of neighbours that the recall counts.", default=8, at_least=1)
    recall_sample: int = setting("Number of queries sampled to measure the recall.", default=1000, at_least=1)
    min_recall: float = setting(
        "Lowest recall at which the index is written, from 0 to 1.", default=0.95, at_least=0, at_most=1
    )
    seed: int = setting("Seed of the graph's levels and of the sampled queries.", default=0, at_least=0)
    threads: int = setting(
        "hnsw: threads of the build. With more than one thread, each build writes different bytes.",
        default=1,
        at_least=1,
    )
    shards: int = setting(
        "hnsw: number of graphs, each over a range of the rows. They are built in parallel, searched together, and can be "
        "divided over the processes of a training (--index-shards).",
        default=1,
        at_least=1,
    )
    device: str = runtime(
        "Device of the exact search that the recall is measured against: auto, cpu or cuda:N.",
        default="auto",
        check=check_device,
    )

    def check(self) -> None:
        self._options().check()

    def estimate(self) -> dict[str, float]:
        """hnswlib keeps a float32 copy of each vector, 2 m links on the ground level, and a few above it."""
        from realmctl.index.vectors import open_vectors

        rows, width = open_vectors(self.embeddings.file("embeddings.npy")).shape
        graph = rows * (4 * width + 4 * (2 * self.m + 1) + 8 + 4 * self.m) if self.type == "hnsw" else 0
        return {"disk_bytes": float(graph), "memory_bytes": float(graph + 4 * rows * width)}

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.index.build import build
        from realmctl.models.precision import pick_device

        out.link("vectors.npy", self.embeddings.file("embeddings.npy"))
        return build(out.path, self._options(), device=str(pick_device(self.device)))

    def _options(self) -> IndexOptions:
        from realmctl.index.index_type import IndexOptions

        return IndexOptions.from_settings(vars(self))
