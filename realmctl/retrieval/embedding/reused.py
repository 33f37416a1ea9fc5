"""Vectors that exist already: of blocks that did not change, and of retrievers that training left as they were. `embed` looks for them.

A vector depends on the retriever and on the wordpieces of title and body, and on nothing else. So a block of the same
content, embedded by the same retriever, keeps its vector wherever its row is now. Legend: D projection, n blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact, require_same_vocabulary
from realmctl.artifacts.disk import QUARANTINE
from realmctl.artifacts.manifest import FileEntry
from realmctl.artifacts.series import is_whole, readable_versions
from realmctl.artifacts.unfinished import read_recipe
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError, MismatchError
from realmctl.index.protocol import Vectors
from realmctl.index.vectors import VECTORS_FILE, open_vectors
from realmctl.log import say
from realmctl.models.retriever_settings import RETRIEVER
from realmctl.retrieval.embedding.embedding_file import JOURNAL, EmbeddingFile
from realmctl.retrieval.embedding.settings import Dtype

ABSENT = -1
EMBEDDINGS_FILE = "embeddings.npy"


def same_retriever(one: Artifact, other: Artifact) -> bool:
    """Whether two retrievers have the same weights and settings, and so give every text the same vector, whatever was recorded beside."""

    def computing(artifact: Artifact) -> dict[str, FileEntry]:
        files = artifact.manifest.files
        return {name: files[name] for name in files if name == RETRIEVER or name.startswith(("query/", "block/"))}

    return computing(one) == computing(other)


def made_before(blocks: Artifact, retriever: Artifact, embeddings: Path, dtype: str, precision: str) -> Artifact | None:
    """Return embeddings of the same blocks by another version of a retriever, with the same weights; None where there are none.

    A training that keeps its start, because no gain is shown, makes such a version.

    Args:
        blocks: the blocks.
        retriever: the retriever. The other versions of its series are looked at.
        embeddings: the series of embeddings that is searched.
        dtype, precision: floating-point type and arithmetic, as settings of `embed`.
    """
    for each in _by_its_weights(retriever, embeddings, dtype, precision):
        if each.lineage.get("blocks") == blocks.content and is_whole(each):
            return each
    return None


def known_vectors(
    blocks: Artifact, retriever: Artifact, embeddings: Path, dtype: Dtype, precision: str
) -> FormerVectors | None:
    """Return the vectors of equal blocks in the newest embeddings of other blocks in the series of `blocks`, and in runs that were interrupted and set aside; None where there are neither.

    Arguments as of `made_before`.
    """
    found, others = list[FormerVectors](), [*readable_versions(blocks.path.absolute().parent)]
    for each in _by_its_weights(retriever, embeddings, dtype, precision):
        for former in others:
            if not found and each.lineage.get("blocks") == former.content and is_whole(each) and is_whole(former):
                found.append(former_vectors(each, former, blocks, dtype))
    makers = {each.content for each in _of_its_weights(retriever)}
    for folder in sorted((embeddings / QUARANTINE).glob("v*.partial-*"), key=lambda path: path.stat().st_mtime):
        started = read_recipe(folder)
        if started is None or started.origin.inputs.get("retriever") not in makers:
            continue
        if {"dtype": dtype, "precision": precision}.items() <= started.origin.settings.items():
            known = [each for each in others if started.origin.inputs.get("blocks") == each.content and is_whole(each)]
            found += [had for each in known if (had := _interrupted(folder, each, blocks, dtype)) is not None]
    return FormerVectors([source for each in found for source in each.sources]) if found else None


def _interrupted(folder: Path, former: Artifact, blocks: Artifact, dtype: Dtype) -> FormerVectors | None:
    """The vectors that an interrupted run has finished; None where there are none for these blocks."""
    journal, corpus = folder / JOURNAL, Corpus(former)
    try:
        vectors = open_vectors(folder / EMBEDDINGS_FILE, count=len(corpus))
    except (InputError, MismatchError):
        return None
    if not journal.is_file() or vectors.dtype != np.dtype(dtype):
        return None
    with EmbeddingFile(folder / EMBEDDINGS_FILE, journal, len(corpus), vectors.shape[1], dtype) as file:
        is_done = np.zeros(len(corpus) + 1, bool)
        for start, stop in file.done():
            is_done[start:stop] = True
    row_n = matching_rows(corpus, Corpus(blocks))
    row_n[~is_done[row_n]] = ABSENT  # the last place is that of -1
    if not (count := int((row_n != ABSENT).sum())):
        return None
    say(f"embed: {count:,} vectors of an interrupted run are taken over ({folder})")
    return FormerVectors([(vectors, row_n)])


def _by_its_weights(retriever: Artifact, embeddings: Path, dtype: str, precision: str) -> Iterator[Artifact]:
    """Yield the embeddings of a series by a retriever or another version of it with the same weights, newest first."""
    makers = {each.content for each in _of_its_weights(retriever)}
    for each in readable_versions(embeddings):
        made_by = each.lineage.get("retriever"), each.settings.get("dtype"), each.settings.get("precision")
        if made_by in {(one, dtype, precision) for one in makers}:
            yield each


def _of_its_weights(retriever: Artifact) -> list[Artifact]:
    """A retriever, and the other versions of its series with the same weights."""
    versions = readable_versions(retriever.path.absolute().parent)
    return [
        retriever,
        *(each for each in versions if each.kind == retriever.kind and same_retriever(each, retriever)),
    ]


class FormerVectors:
    """Vectors of blocks that were embedded before.

    Args:
        sources: former vectors [m, D], and the row in them of each block, int64 [n], -1 for a block that they do not have. The first source that has a block counts.
    """

    def __init__(self, sources: Sequence[tuple[Vectors, NDArray[np.int64]]]) -> None:
        self.sources = sources
        self.known_n = np.any([row_n != ABSENT for _, row_n in sources], axis=0)
        """Whether a block has a former vector, bool [n]."""

    @property
    def count(self) -> int:
        """Number of blocks whose vectors are taken over."""
        return int(self.known_n.sum())

    def fill(self, stored: NDArray[np.floating], rows: range) -> None:
        """Put the former vectors of some rows into their places in `stored`, [len(rows), D]."""
        for vectors, row_n in reversed(self.sources):
            kept = row_n[rows.start : rows.stop]
            stored[kept != ABSENT] = vectors[kept[kept != ABSENT]]


def former_vectors(former: Artifact, former_blocks: Artifact, blocks: Artifact, dtype: str) -> FormerVectors:
    """Open former vectors and find the blocks that they are of.

    Args:
        former: embeddings or an index.
        former_blocks: the blocks that `former` was made from.
        blocks: the blocks to embed.
        dtype: floating-point type of the embeddings to make.

    Raises:
        MismatchError: `former` was not made from `former_blocks`, or the vocabularies or the floating-point types differ.
    """
    require_same_vocabulary(former_blocks, blocks)
    vectors = open_vectors(former.file(EMBEDDINGS_FILE if former.kind == "embeddings" else VECTORS_FILE))
    corpus = Corpus(former_blocks)
    if former.lineage.get("blocks") != former_blocks.content or len(vectors) != len(corpus):
        raise MismatchError(
            f"{former} was not made from {former_blocks}, so its rows are not those blocks. Name the blocks that it was "
            "made from with --former-blocks."
        )
    if vectors.dtype != np.dtype(dtype):
        raise MismatchError(
            f"{former} holds {vectors.dtype}, and embed was asked for {dtype}. Use --dtype {vectors.dtype}, or leave "
            "out --former to embed every block."
        )
    return FormerVectors([(vectors, matching_rows(corpus, Corpus(blocks)))])


def matching_rows(former: Corpus, corpus: Corpus) -> NDArray[np.int64]:
    """Row in `former` of a block with the same wordpieces, for each block of `corpus`: int64 [n], -1 where there is none.

    Blocks are found by uid, and then their wordpieces are compared.
    """
    uids, first = np.unique(np.asarray(former.uid), return_index=True)
    place = np.searchsorted(uids, np.asarray(corpus.uid)).clip(max=len(uids) - 1)
    row_n = np.where(uids[place] == corpus.uid, first[place], ABSENT).astype(np.int64)
    for row in np.flatnonzero(row_n != ABSENT).tolist():
        other = int(row_n[row])
        same_title = np.array_equal(former.title(other), corpus.title(row))
        if not (same_title and np.array_equal(former.tokens(other), corpus.tokens(row))):
            row_n[row] = ABSENT
    return row_n
