"""`realmctl build-index`: embeddings into an index that is known to find what it should."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer
from realmctl.stage import Stage, reads, runtime, setting

if TYPE_CHECKING:
    from realmctl.index.build import IndexOptions


class BuildIndex(Stage):
    """Build an index of the embeddings, exact or hnsw.

    The recall of an hnsw index is measured against exact search on sampled rows; below the floor nothing is
    published.
    """

    makes = "index"

    embeddings: Artifact = reads("embeddings", help="Embeddings to search.")
    type: Literal["hnsw", "exact"] = setting("hnsw: fast, approximate. exact: every block is scored.", default="hnsw")
    m: int = setting("hnsw: links of a vector; more find more and need more memory.", default=16)
    ef_construction: int = setting("hnsw: beam while building; wider is slower and better.", default=200)
    ef: int | None = setting(
        "hnsw: beam while searching; default the narrowest of 64 to 1024 that reaches --min-recall.",
        default=None,
    )
    recall_k: int = setting("Neighbours counted in the recall.", default=8)
    recall_sample: int = setting("Queries sampled for the recall.", default=1000)
    min_recall: float = setting("Smallest recall that is published.", default=0.95)
    seed: int = setting("Seed of the graph's levels and of the sample.", default=0)
    threads: int = setting("hnsw: threads that build it. With more than one, every build has other bytes.", default=1)
    device: str = runtime("Where exact search measures the recall: auto, cpu or cuda:N.", default="auto")

    def check(self) -> None:
        self._options().check()

    def estimate(self) -> dict[str, float]:
        """hnswlib keeps a float32 copy of each vector, 2 m links on the ground floor, and a few above it."""
        rows, width = self.embeddings.metrics["rows"], self.embeddings.metrics["dimension"]
        graph = rows * (4 * width + 4 * (2 * self.m + 1) + 8 + 4 * self.m) if self.type == "hnsw" else 0
        return {"disk_bytes": float(graph), "memory_bytes": float(graph + 4 * rows * width)}

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.index.build import build
        from realmctl.nn.precision import pick_device

        out.link("vectors.npy", self.embeddings.file("embeddings.npy"))
        return build(out.path, self._options(), device=str(pick_device(self.device)))

    def _options(self) -> IndexOptions:
        from realmctl.index.build import IndexOptions

        return IndexOptions.from_settings(vars(self))
