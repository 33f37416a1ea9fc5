"""From blocks to vectors, in this process or on a Ray cluster: the `embed` stage and every index refresh call the same function.

Blocks are embedded in fixed ranges of rows and, within a range, in a fixed order. So a vector does not depend on
where an interrupted run continued. Legend: B rows of a batch, D projection.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.artifacts import Artifact, Writer, open_artifact
from realmctl.artifacts.arrays import evenly_spaced, open_array
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import InputError, NotFiniteError
from realmctl.execution.batches import batched, slices
from realmctl.execution.shards import LOCAL, cluster
from realmctl.index.vectors import chunks, open_vectors
from realmctl.log import progress, warn
from realmctl.models.inputs import Collator
from realmctl.models.precision import autocast, pick_device
from realmctl.models.retriever import Retriever
from realmctl.models.retriever_settings import read_settings
from realmctl.models.towers.layout import InputLayout
from realmctl.pipeline.trial import Trial
from realmctl.retrieval.embedding.embedding_file import EmbeddingFile
from realmctl.retrieval.embedding.reused import FormerVectors
from realmctl.retrieval.embedding.settings import Dtype, EmbedSettings
from realmctl.tokens.tokenizer import Tokenizer

ROWS_PER_RANGE = 1024
ACTIVATIONS_ON_CPU = 2**18  # floats of one hidden state that fit a core's cache while a batch passes through a layer
LARGER_IN_BF16 = 4  # times: every batch casts the weights again, and bfloat16 needs half the cache
BATCH_ON_ACCELERATOR = 128
TRIAL_SECONDS = 2.0

GOLDEN_RATIO = (5**0.5 - 1) / 2

BlockVectors = NDArray[np.float32]
T = TypeVar("T")


class Embedder(Protocol):
    """Computes the vectors of blocks, here or elsewhere."""

    projection: int
    block_length: int
    layout: InputLayout

    def embed(
        self, ranges: Iterable[Sequence[int]], on_progress: Callable[[int], None]
    ) -> Iterator[NDArray[np.float32]]:
        """Yield the vectors of each range of rows, float32 [len(range), D], in order. A range holds at least one row."""
        ...


class LocalEmbedder:
    """Embeds blocks in this process. The retriever runs on the device of its weights, in evaluation mode.

    collator: lays out the blocks in the retriever's vocabulary.
    precision: arithmetic: auto, fp32 or bf16.
    batch_size: blocks per batch; 0 chooses a number for the device.
    """

    def __init__(
        self, retriever: Retriever, collator: Collator, corpus: Corpus, *, precision: str = "auto", batch_size: int = 0
    ) -> None:
        self.retriever, self.collator, self.corpus = retriever.eval(), collator, corpus
        self.precision, self.batch_size = precision, batch_size
        self.projection, self.block_length, self.layout = retriever.projection, retriever.block_length, retriever.layout

    @classmethod
    def load(
        cls, retriever: Artifact, corpus: Corpus, *, device: str, precision: str, batch_size: int = 0
    ) -> LocalEmbedder:
        """Load a retriever to embed the blocks of a corpus on a device."""
        loaded = Retriever.load(retriever.path).to(pick_device(device))
        collator = Collator.of(Tokenizer.load(corpus.artifact.path))
        return cls(loaded, collator, corpus, precision=precision, batch_size=batch_size)

    def embed(self, ranges: Iterable[Sequence[int]], on_progress: Callable[[int], None]) -> Iterator[BlockVectors]:
        for rows in ranges:
            yield embed_blocks(
                self.retriever,
                self.collator,
                self.corpus,
                rows,
                precision=self.precision,
                batch_size=self.batch_size,
                on_progress=on_progress,
            )


class ClusterEmbedder:
    """Embeds blocks on the Ray cluster that RAY_ADDRESS names, or on a Ray that starts on this machine.

    Each worker loads the retriever once. A range is embedded in one piece, so the vectors are those of one process.

    device: with auto, each worker holds a GPU if the cluster has GPUs; with cpu, a core.
    workers: number of workers; 0 means one for each GPU of the cluster, or for each core if `device` is cpu.
    """

    def __init__(
        self,
        executor: str,
        retriever: Artifact,
        blocks: Artifact,
        *,
        device: str,
        precision: str,
        batch_size: int = 0,
        workers: int = 0,
    ) -> None:
        self.cluster = cluster(executor)
        settings = read_settings(retriever.path)
        self.projection, self.block_length, self.layout = settings.projection, settings.block_length, settings.layout
        self.workers, self.gpus = workers, device != "cpu"
        places = retriever.path.absolute(), blocks.path.absolute()
        self.loading = *places, device, precision, batch_size

    def embed(self, ranges: Iterable[Sequence[int]], on_progress: Callable[[int], None]) -> Iterator[BlockVectors]:
        vectors = self.cluster.map(
            _embed, ranges, self.workers, gpus=self.gpus, initializer=_load, initargs=self.loading
        )
        for made in vectors:
            on_progress(len(made))
            yield made


_embedder: LocalEmbedder


def _load(retriever: Path, blocks: Path, device: str, precision: str, batch_size: int) -> None:
    """Load the retriever in this worker."""
    global _embedder
    corpus = Corpus(open_artifact(blocks))
    _embedder = LocalEmbedder.load(
        open_artifact(retriever), corpus, device=device, precision=precision, batch_size=batch_size
    )


def _embed(rows: Sequence[int]) -> BlockVectors:
    return next(_embedder.embed([rows], lambda blocks: None))


def embed_artifact(
    blocks: Artifact,
    retriever: Artifact,
    settings: EmbedSettings,
    out: Writer,
    former: FormerVectors | None = None,
) -> dict[str, float]:
    """Write the embeddings of blocks, and return the metrics. A run that was interrupted continues where it stopped.

    Args:
        blocks: the blocks.
        retriever: the retriever whose block encoder embeds them.
        settings: how and where.
        out: the folder to write to.
        former: vectors by the same retriever, which are taken over.

    Raises: as `embed_corpus`.
    """
    corpus = Corpus(blocks)
    device, precision, batch_size, workers = (
        settings.device,
        settings.precision,
        settings.batch_size or 0,
        settings.workers,
    )
    embedder: Embedder
    if settings.executor != LOCAL:
        embedder = ClusterEmbedder(
            settings.executor,
            retriever,
            blocks,
            device=device,
            precision=precision,
            batch_size=batch_size,
            workers=workers,
        )
    else:
        embedder = LocalEmbedder.load(retriever, corpus, device=device, precision=precision, batch_size=batch_size)
    with progress(len(corpus), "embedding", "blocks") as bar:
        return embed_corpus(
            embedder,
            corpus,
            out.file("embeddings.npy"),
            journal=out.scratch("ranges") / "done.jsonl",
            dtype=settings.dtype,
            on_progress=bar.advance,
            on_reused=bar.skip,
            former=former,
        )


def try_to_embed(
    blocks: Artifact, retriever: Artifact, settings: EmbedSettings, kept: FormerVectors | None = None
) -> Trial:
    """Tell how long `embed_artifact` takes in this process, from a sample of the blocks.

    Samples that are twice as large as the one before are embedded, until one takes two seconds or has a range's size. The last one
    counts, by its share of the wordpieces.
    """
    begin, corpus = time.monotonic(), Corpus(blocks)
    embedder = LocalEmbedder.load(
        retriever, corpus, device=settings.device, precision=settings.precision, batch_size=settings.batch_size or 0
    )
    rows = [row for part in ranges(len(corpus)) for row in _missing(part, kept)]
    if not rows:
        return Trial(time.monotonic() - begin)
    next(embedder.embed([rows[:1]], lambda blocks: None))  # the first batch is slower
    before, size = time.monotonic() - begin, 16
    while True:
        sample = [rows[place] for place in evenly_spaced(len(rows), size)]
        start = time.monotonic()
        next(embedder.embed([sample], lambda blocks: None))
        seconds = time.monotonic() - start
        if seconds >= TRIAL_SECONDS or size >= min(ROWS_PER_RANGE, len(rows)):
            of_all = seconds * float(corpus.lengths[rows].sum()) / max(1.0, float(corpus.lengths[sample].sum()))
            return Trial(before, of_all / len(rows), len(rows), "blocks")
        size *= 2


def embed_corpus(
    embedder: Embedder,
    corpus: Corpus,
    path: Path,
    *,
    journal: Path,
    dtype: Dtype = "float32",
    on_progress: Callable[[int], None] = lambda blocks: None,
    on_reused: Callable[[int], None] | None = None,
    former: FormerVectors | None = None,
) -> dict[str, float]:
    """Embed every block into a file, except the ranges that are done already.

    Args:
        embedder: computes the vectors.
        corpus: the blocks.
        path: the .npy file to write, [n, D]; row i is block i.
        journal: file that records the ranges that are done.
        dtype: floating-point type of the file.
        on_progress: called with the number of further blocks that are done.
        on_reused: called instead with the number of blocks that an earlier run has done, or that have a former vector.
        former: vectors to take over; the blocks without one are embedded.

    Returns:
        The metrics of the embeddings. With `former`, they include the numbers of blocks taken over and embedded.

    Raises:
        InputError: the corpus is empty, or the vector of a block is not finite.
        MismatchError: the retriever has no block encoder.
        ResourceError: the disk is too small.
    """
    if not len(corpus):
        raise InputError(f"{corpus.artifact} holds no block, so there is nothing to embed. Chunk a corpus with text.")
    truncated = count_truncated(
        corpus, embedder.block_length, embedder.layout.extra_tokens(Tokenizer.load(corpus.artifact.path).frame)
    )
    if truncated:
        warn(
            f"{truncated} blocks are longer than the {embedder.block_length} wordpieces this retriever "
            "reads; their ends are not embedded"
        )
    with EmbeddingFile(path, journal, len(corpus), embedder.projection, dtype) as file:
        done, on_reused = file.done(), on_reused or on_progress
        on_reused(sum(stop - start for start, stop in done))
        todo = [rows for rows in ranges(len(corpus)) if (rows.start, rows.stop) not in done]
        computed = embedder.embed(filter(None, (_missing(rows, former) for rows in todo)), on_progress)
        for rows in todo:
            missing = _missing(rows, former)
            stored = np.empty((len(rows), embedder.projection), dtype)
            if former is not None:
                former.fill(stored, rows)
                on_reused(len(rows) - len(missing))
            if missing:
                with np.errstate(over="ignore"):
                    stored[np.asarray(missing) - rows.start] = next(computed).astype(dtype)
            _check_finite(stored, rows, corpus)
            file.write(rows.start, stored)
    counts = {} if former is None else {"taken_over": former.count, "embedded": len(corpus) - former.count}
    return {"truncated_blocks": truncated, **describe(path), **counts}


def _missing(rows: range, former: FormerVectors | None) -> Sequence[int]:
    """The rows that have no former vector."""
    return rows if former is None else [row for row in rows if not former.known_n[row]]


def ranges(count: int) -> list[range]:
    """The ranges of rows that are embedded and stored together."""
    return batched(range(count), ROWS_PER_RANGE)


def embed_blocks(
    retriever: Retriever,
    collator: Collator,
    corpus: Corpus,
    rows: Sequence[int],
    *,
    precision: str = "auto",
    batch_size: int = 0,
    on_progress: Callable[[int], None] = lambda blocks: None,
) -> BlockVectors:
    """Vectors of some blocks, float32 [len(rows), D], in the order of `rows`.

    Blocks of similar length share a batch. The retriever must be in evaluation mode. The accelerator is synchronised once,
    after the last batch.
    """
    titles, bodies = [corpus.title(row) for row in rows], [corpus.tokens(row) for row in rows]
    return embed_titles_and_bodies(
        retriever, collator, titles, bodies, precision=precision, batch_size=batch_size, on_progress=on_progress
    )


@torch.no_grad()
def embed_titles_and_bodies(
    retriever: Retriever,
    collator: Collator,
    titles: Sequence[TokenIds],
    bodies: Sequence[TokenIds],
    *,
    precision: str = "auto",
    batch_size: int = 0,
    on_progress: Callable[[int], None] = lambda blocks: None,
) -> BlockVectors:
    """`embed_blocks` for the wordpieces of titles and bodies, float32 [len(titles), D]; at least one."""
    device = next(retriever.parameters()).device
    lengths = [len(title) + len(body) for title, body in zip(titles, bodies, strict=True)]
    order = np.argsort(lengths, kind="stable")
    parts = []
    with autocast(device, precision):
        extra = retriever.layout.extra_tokens(collator.frame)
        read = np.minimum(np.array(lengths)[order] + extra, retriever.block_length)
        batches = spread(np.split(order, _borders(device, retriever, read, batch_size)))
        for batch in batches:
            packed = retriever.pack_blocks(collator, [titles[i] for i in batch], [bodies[i] for i in batch])
            parts.append(retriever.embed_blocks(packed.to(device)).float())
            on_progress(len(batch))
    vectors = np.empty((len(order), retriever.projection), np.float32)
    vectors[np.concatenate(batches)] = torch.cat(parts).cpu().numpy()
    return vectors


def spread(batches: Sequence[T]) -> list[T]:
    """Return batches that are sorted by length in an order of which every part has short and long ones, so that time left is told right."""
    return [batches[i] for i in sorted(range(len(batches)), key=lambda i: i * GOLDEN_RATIO % 1)]


@torch.inference_mode()
def embed_questions(
    retriever: Retriever,
    collator: Collator,
    questions: Sequence[TokenIds],
    *,
    precision: str = "auto",
    batch_size: int = 0,
) -> NDArray[np.float32]:
    """Questions as float32 [len(questions), D]; one of more than `longest_question` tokens is cut.

    The retriever must be in evaluation mode. batch_size: 0 means one batch of all.
    """
    device = next(retriever.parameters()).device
    vectors = np.empty((len(questions), retriever.projection), np.float32)
    with autocast(device, precision):
        for part in slices(len(questions), batch_size):
            packed = retriever.pack_queries(collator, questions[part], retriever.longest_question)
            vectors[part] = retriever.embed_queries(packed.to(device)).float().cpu().numpy()
    return vectors


def _borders(device: torch.device, retriever: Retriever, read: NDArray[np.int64], size: int) -> list[int]:
    """Where each batch but the first begins, among blocks of which so many tokens are read, rising. size: blocks of a batch, or 0."""
    if size or device.type != "cpu":
        return [*range(size or BATCH_ON_ACCELERATOR, len(read), size or BATCH_ON_ACCELERATOR)]
    larger = LARGER_IN_BF16 if torch.is_autocast_enabled("cpu") else 1
    most, borders = larger * ACTIVATIONS_ON_CPU // int(retriever.query_tower.bert.config.hidden_size), [0]
    for place, tokens in enumerate(read.tolist()):
        if place > borders[-1] and (place + 1 - borders[-1]) * tokens > most:
            borders.append(place)
    return borders[1:]


def count_truncated(corpus: Corpus, block_length: int, extra_tokens: int) -> int:
    """Number of blocks that are too long for the retriever, with their title, and with `extra_tokens` special tokens and a prefix."""
    titles = np.diff(open_array(corpus.artifact.file("title_offsets.npy")))
    return int((corpus.lengths + titles + extra_tokens > block_length).sum())


def describe(path: Path) -> dict[str, float]:
    """Number of rows, dimension, mean norm, coefficient of variation of the norms, and norm of the mean vector / mean norm.

    When the last value (`mean_vector_share`) is near 1, all blocks have nearly the same vector: the retriever has collapsed.
    """
    matrix = open_vectors(path)
    norms, total = np.empty(len(matrix)), np.zeros(matrix.shape[1])
    for start, rows in chunks(matrix):
        norms[start : start + len(rows)] = np.linalg.norm(rows.astype(np.float64), axis=1)
        total += rows.sum(axis=0, dtype=np.float64)
    mean = float(norms.mean())
    return {
        "rows": len(matrix),
        "dimension": matrix.shape[1],
        "norm_mean": mean,
        "norm_cv": float(norms.std() / mean) if mean else 0.0,
        "mean_vector_share": float(np.linalg.norm(total / len(matrix)) / mean) if mean else 0.0,
    }


def _check_finite(vectors: NDArray[np.floating], rows: Sequence[int], corpus: Corpus) -> None:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        block = corpus.block(rows[int(bad[0])])
        raise NotFiniteError(
            f"The embedding of block {block.id} ({block.title!r}) is not finite in {vectors.dtype}, "
            "so it cannot be searched. The weights are damaged or training diverged. Use another retriever"
            + (", or --dtype float32." if vectors.dtype == np.float16 else ".")
        )
