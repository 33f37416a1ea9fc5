"""Make a snapshot of a retriever, and an index of a snapshot. Every kind of refresh uses this file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from realmctl.artifacts import MANIFEST, Artifact, Origin, lineage_of, open_artifact, writing
from realmctl.artifacts.array_file import open_array
from realmctl.corpus.corpus import Corpus
from realmctl.execution.shards import Executor
from realmctl.index.build import build as build_index
from realmctl.models.inputs import Collator
from realmctl.models.precision import pick_device
from realmctl.models.retriever import Retriever
from realmctl.retrieval.embedding.embedding import Embedder, LocalEmbedder, embed_corpus
from realmctl.retrieval.embedding.ray_embedder import RayEmbedder
from realmctl.retrieval.initial_encoder import packer_of, tokenizer_of
from realmctl.training.refresh.refresh_folder import KEPT_SNAPSHOTS, RefreshFolder, RefreshRequest, at_step, prune


def take_snapshot(folder: RefreshFolder, origin: Origin, step: int, retriever: Retriever, tokenizer: Path) -> Artifact:
    """Commit the retriever as the snapshot of a step, and prune older snapshots.

    If the snapshot exists, return it: it was taken at the same step of the same run.
    """
    path = at_step(folder.snapshots, step)
    if (path / MANIFEST).is_file():
        return open_artifact(path)
    snapshot = write_retriever(path, origin, retriever, tokenizer, {"step": step})
    prune(folder.snapshots, KEPT_SNAPSHOTS, folder.held_snapshots())
    return snapshot


def write_retriever(
    path: Path, origin: Origin, retriever: Retriever, tokenizer: Path, metrics: Mapping[str, Any]
) -> Artifact:
    """Write a retriever artifact at exactly `path`, with a copy of the tokenizer's folder."""
    with writing(path, origin) as out:
        out.metrics.update(metrics)
        retriever.save(out.path)
        out.copy_folder("tokenizer", tokenizer)
    return open_artifact(path)


def dtype_of(index: Artifact) -> Literal["float32", "float16"]:
    """Return the number format of an index's vectors; float32 for every format but float16."""
    vectors = open_array(index.file("vectors.npy"))
    return "float16" if vectors.dtype == np.float16 else "float32"


class IndexMaker:
    """Embeds the blocks of a request with a retriever and builds the index. It opens the blocks once."""

    def __init__(self, request: RefreshRequest, device: str, executor: Executor = "local") -> None:
        self.request, self.device, self.executor = request, pick_device(device), executor
        self.blocks = open_artifact(request.blocks)
        self.corpus = Corpus(self.blocks)
        self.collator: Collator = packer_of(tokenizer_of(self.blocks))

    def make(
        self, retriever: Artifact, path: Path, on_progress: Callable[[int], None] = lambda blocks: None
    ) -> Artifact:
        """Write the index of the blocks under `retriever` at exactly `path`.

        Args:
            retriever: A snapshot, or the final retriever.
            path: Where the index will be. An artifact that is there is replaced.
            on_progress: Called with the number of blocks embedded since the last call.

        Raises:
            QualityError: The recall of the index is below its floor.
            InputError: A vector is not finite.
            ResourceError: Memory or disk space ran out.
        """
        inputs = {"blocks": self.blocks, "retriever": retriever}
        origin = Origin(
            "index",
            "refresh",
            1,
            dict(self.request.index),
            {name: artifact.content for name, artifact in inputs.items()},
            lineage_of(inputs),
        )
        with writing(path, origin) as out:
            embed_corpus(
                self._embedder(retriever),
                self.corpus,
                out.file("vectors.npy"),
                dtype=self.request.dtype,
                journal=out.scratch("ranges") / "done.jsonl",
                on_progress=on_progress,
            )
            out.metrics.update(build_index(out.path, self.request.options, device=str(self.device)))
        return open_artifact(path)

    def _embedder(self, retriever: Artifact) -> Embedder:
        precision = self.request.precision
        if self.executor == "ray":
            return RayEmbedder(retriever, self.blocks, device=self.device.type, precision=precision)
        model = Retriever.load(retriever.path).to(self.device)
        return LocalEmbedder(model, self.collator, self.corpus, precision=precision)
