"""Embed blocks on a Ray cluster. Each worker loads the retriever once and embeds ranges of rows.

The vectors are those of one process: a range is embedded in one piece, in the same batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from realmctl.artifacts import Artifact, open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.execution.ray_workers import map_on_ray
from realmctl.models.inputs import Collator
from realmctl.models.precision import pick_device
from realmctl.models.retriever import Retriever
from realmctl.models.retriever_settings import read_settings
from realmctl.retrieval.embedding.embedding import BlockVectors, LocalEmbedder
from realmctl.tokens import wordpiece


class RayEmbedder:
    """Embeds blocks on the Ray cluster that RAY_ADDRESS names, or on a Ray that starts on this machine.

    workers: number of workers; 0 means one for each GPU of the cluster, or for each core if `device` is cpu.
    device: with auto, each worker holds a GPU if the cluster has GPUs; with cpu, a core.
    """

    def __init__(
        self,
        retriever: Artifact,
        blocks: Artifact,
        *,
        device: str,
        precision: str,
        batch_size: int = 0,
        workers: int = 0,
    ) -> None:
        settings = read_settings(retriever.path)
        self.projection, self.block_length = settings.projection, settings.block_length
        self.layout = settings.layout
        self.workers, self.gpus = workers, device != "cpu"
        self.setup = _Setup(retriever.path.absolute(), blocks.path.absolute(), device, precision, batch_size)

    def embed(self, ranges: Iterable[Sequence[int]], on_progress: Callable[[int], None]) -> Iterator[BlockVectors]:
        vectors = map_on_ray(_embed, ranges, self.workers, gpus=self.gpus, initializer=_prepare, initargs=(self.setup,))
        for made in vectors:
            on_progress(len(made))
            yield made


@dataclass(frozen=True)
class _Setup:
    retriever: Path
    blocks: Path
    device: str
    precision: str
    batch_size: int


_embedder: LocalEmbedder | None = None


def _prepare(setup: _Setup) -> None:
    """Load the retriever in this worker."""
    global _embedder
    blocks = open_artifact(setup.blocks)
    retriever = Retriever.load(setup.retriever).to(pick_device(setup.device))
    _embedder = LocalEmbedder(
        retriever,
        Collator.of(wordpiece.load(blocks.path)),
        Corpus(blocks),
        precision=setup.precision,
        batch_size=setup.batch_size,
    )


def _embed(rows: Sequence[int]) -> BlockVectors:
    assert _embedder is not None
    return next(_embedder.embed([rows], lambda blocks: None))
