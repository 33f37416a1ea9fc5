"""`realmctl build-index`: build an index over the embeddings and measure its recall."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Artifact, Writer
from realmctl.index.settings import IndexSettings
from realmctl.pipeline import Stage, check_device, reads, runtime
from realmctl.pipeline.settings import extended
from realmctl.pipeline.trial import Trial


@extended("build-index")
class BuildIndex(IndexSettings, Stage):
    """Build an index over the embeddings.

    The recall of an approximate index is measured against exact search on sampled queries. An index below --min-recall
    is not written.
    """

    makes = "index"
    headline = ("recall", "rows", "ef")
    grows_with = "embeddings"

    embeddings: Artifact = reads("embeddings", help="Embeddings to build the index over.")
    device: str = runtime(
        "Device of the exact search that the recall is measured against: auto, cpu or cuda:N.",
        default="auto",
        check=check_device,
    )

    @classmethod
    def is_brief(cls, values: Mapping[str, object]) -> bool:
        return values.get("type") == "exact"

    def check(self) -> None:
        from realmctl.index.index_type import chosen_type

        chosen_type(self)

    def estimate(self) -> dict[str, float]:
        from realmctl.index.index_type import chosen_type
        from realmctl.index.vectors import open_vectors

        rows, width = open_vectors(self.embeddings.file("embeddings.npy")).shape
        beside = chosen_type(self).size(self, rows, width)
        return {"disk_bytes": float(beside), "memory_bytes": float(beside + 4 * rows * width)}

    def trial(self) -> Trial:
        from realmctl.index.build import try_to_build
        from realmctl.index.vectors import open_vectors
        from realmctl.models.precision import pick_device

        vectors = open_vectors(self.embeddings.file("embeddings.npy"))
        return try_to_build(vectors, self, str(pick_device(self.device)))

    def run(self, out: Writer) -> Mapping[str, float]:
        from realmctl.index.build import build
        from realmctl.models.precision import pick_device

        out.link("vectors.npy", self.embeddings.file("embeddings.npy"))
        return build(out.path, self, device=str(pick_device(self.device)))
