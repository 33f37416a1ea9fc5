"""Make a snapshot of a retriever, and an index of a snapshot. Trainer and refresher both use this file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from realmctl.artifacts import Artifact, Origin, Writer, lineage_of, open_artifact, tokenizer_folder, writing
from realmctl.artifacts.arrays import open_array
from realmctl.corpus.corpus import Corpus
from realmctl.execution.shards import LOCAL
from realmctl.index.build import build as build_index
from realmctl.index.settings import index_settings
from realmctl.models.inputs import Collator
from realmctl.models.precision import pick_device
from realmctl.models.retriever import Retriever
from realmctl.retrieval.embedding.embedding import ClusterEmbedder, Embedder, LocalEmbedder, embed_corpus
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.refresh.protocol import RefreshRequest
from realmctl.training.settings.pretrain import RefreshSettings


def request_of(settings: RefreshSettings) -> RefreshRequest:
    """Return the request for indexes like the one that a run begins with."""
    vectors = open_array(settings.index.file("vectors.npy"))
    return RefreshRequest(
        blocks=str(settings.blocks.path.resolve()),
        index=index_settings().of(settings.index.settings),
        former=str(settings.index.path.resolve()),
        dtype="float16" if vectors.dtype == np.float16 else "float32",
        precision=settings.precision,
    )


def retriever_origin(settings: RefreshSettings, out: Writer) -> Origin:
    """Return the origin of the snapshots and of the final retriever: the run's recipe."""
    return replace(out.origin, kind="retriever", lineage={**out.origin.lineage, "blocks": settings.blocks.content})


def write_retriever(path: Path, origin: Origin, retriever: Retriever, blocks: Artifact, step: int) -> Artifact:
    """Write the retriever after `step` steps as an artifact at exactly `path`, with a copy of the blocks' tokenizer.

    An artifact that is there is replaced.
    """
    with writing(path, origin) as out:
        out.metrics["step"] = step
        retriever.save(out.path)
        out.copy_folder("tokenizer", tokenizer_folder(blocks))
    return open_artifact(path)


class IndexMaker:
    """Embeds the blocks of a request with a retriever and builds the index. It opens the blocks once, when they are needed."""

    def __init__(self, request: RefreshRequest, device: str, executor: str = LOCAL) -> None:
        self.request, self.device, self.executor = request, pick_device(device), executor
        self.blocks = open_artifact(request.blocks)

    @cached_property
    def corpus(self) -> Corpus:
        return Corpus(self.blocks)

    @cached_property
    def collator(self) -> Collator:
        return Collator.of(Tokenizer.load(self.blocks.path))

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
        contents = {name: artifact.content for name, artifact in inputs.items()}
        origin = Origin("index", "refresh", 1, asdict(self.request.index), contents, lineage_of(inputs))
        with writing(path, origin) as out:
            embed_corpus(
                self._embedder(retriever),
                self.corpus,
                out.file("vectors.npy"),
                dtype=self.request.dtype,
                journal=out.scratch("ranges") / "done.jsonl",
                on_progress=on_progress,
            )
            former = Path(self.request.former)
            out.metrics.update(build_index(out.path, self.request.index, str(self.device), former))
        return open_artifact(path)

    def _embedder(self, retriever: Artifact) -> Embedder:
        precision = self.request.precision
        if self.executor != LOCAL:
            return ClusterEmbedder(self.executor, retriever, self.blocks, device=self.device.type, precision=precision)
        model = Retriever.load(retriever.path).to(self.device)
        return LocalEmbedder(model, self.collator, self.corpus, precision=precision)
