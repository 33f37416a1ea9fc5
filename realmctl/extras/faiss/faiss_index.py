"""Approximate search with faiss: an index of `faiss.index_factory` for each range of rows (extra `faiss`).

trained.faiss    what was trained on a sample of the vectors, such as centroids and codebooks; without rows
part-000.faiss   the rows of the first range
index.json       factory, width of the search, hashes

An index refresh uses `trained.faiss` again while the recall holds: training takes longer than adding rows, and the vectors
of two refreshes lie much alike. Large parts are memory-mapped. The rows found are scored with the vectors.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.artifacts.hashing import digest_file
from realmctl.errors import ConfigError, InputError, ResourceError, one_line
from realmctl.extras.faiss.options import FaissOptions
from realmctl.index.index_type import IndexDescription, IndexType, write_index_description
from realmctl.index.merged import MergedIndex, bounds
from realmctl.index.protocol import Index, RowIds, Scores, Vectors
from realmctl.index.recall import Recall
from realmctl.index.rescored import RescoredIndex, reach_recall
from realmctl.index.settings import IndexSettings
from realmctl.index.vectors import chunks
from realmctl.log import progress, say

TRAINED_FILE = "trained.faiss"
SAMPLED_ROWS = 2**18
SAMPLED_PER_LIST = 64
"""Rows that centroids and codebooks are trained on: SAMPLED_ROWS, and at least so many for each list of an inverted file."""
IN_MEMORY = 2**28
"""Bytes of a part that is read into memory, where a search takes .88 of the time."""
WIDTHS = tuple(2**power for power in range(13))
WIDTH_NAMES = ("nprobe", "efSearch")
MAX_PARTS = 1000
IN_CPP = re.compile(r"^Error in .*? at \S+:\d+: (Error: )?", re.DOTALL)
"""What stands before the reason in a message of faiss: function, file and line."""

FaissLibrary = Any
FaissPart = Any
"""A `faiss.Index`: the package has no types."""


class FaissIndex(RescoredIndex):
    """An index of faiss over frozen vectors (`realmctl.index.protocol.Index`).

    It uses as many threads as torch, which has an OpenMP of its own.
    """

    oversampled = 4

    def __init__(self, part: FaissPart, vectors: Vectors) -> None:
        super().__init__(vectors)
        self._part = part
        faiss = _faiss()
        if isinstance(faiss.downcast_index(part), (faiss.IndexFlat, faiss.IndexIVFFlat, faiss.IndexHNSWFlat)):
            self.oversampled = 1  # it holds the vectors themselves, so the rows that it finds are the best it has

    def widen(self, ef: int) -> None:
        """Set `nprobe` and `efSearch` of the index, where it has them."""
        faiss = _faiss()
        space = faiss.ParameterSpace()
        space.initialize(self._part)
        names = [space.parameter_ranges.at(place).name for place in range(space.parameter_ranges.size())]
        for name in WIDTH_NAMES:
            if name in names:
                space.set_index_parameter(self._part, name, ef)

    def find(self, queries_BD: NDArray[np.float32], k: int) -> tuple[Scores | None, RowIds]:
        _faiss().omp_set_num_threads(torch.get_num_threads())
        scores, ids = self._part.search(queries_BD, k)
        return scores if self.oversampled == 1 else None, np.asarray(ids, np.int64)


class FaissParts(MergedIndex):
    """The opened parts. `ef` is the width of the search of each."""

    def __init__(self, parts: list[tuple[int, FaissIndex]], vectors: Vectors, ef: int) -> None:
        super().__init__(parts, vectors)
        self._own = [part for _, part in parts]
        self.ef = ef

    @property
    def ef(self) -> int:
        return self._ef

    @ef.setter
    def ef(self, ef: int) -> None:
        self._ef = ef
        for part in self._own:
            part.widen(ef)

    def search_graph(self, queries_BD: Vectors, k: int) -> tuple[Scores, RowIds]:
        return self._merged(queries_BD, k, [part.search_graph for part in self._own])


@dataclass(frozen=True)
class FaissDescription(IndexDescription):
    """Content of `index.json` of a faiss index."""

    factory: str = ""
    ef: int = 1
    trained: str = ""
    """Hash of trained.faiss."""
    sha256: list[str] = field(default_factory=list)
    """Hash of each part."""

    def check(self) -> None:
        super().check()
        if not 1 <= len(self.sha256) <= min(MAX_PARTS, self.count) or self.ef < 1:
            raise ValueError(f"it has {len(self.sha256)} parts, ef {self.ef}, for {self.count} vectors")


class FaissIndexType(IndexType):
    """Parts over ranges of the rows, with one training. The recall floor holds for the merged answers."""

    description = FaissDescription
    kept = (TRAINED_FILE,)

    @classmethod
    def in_shards(cls) -> type[IndexType]:
        return cls

    def build(self, folder: Path, vectors: Vectors, settings: IndexSettings, device: str) -> Mapping[str, float]:
        count, dimension = vectors.shape
        if settings.shards > min(count, MAX_PARTS):
            raise ConfigError(
                f"--shards {settings.shards}: {count} vectors can have at most {min(count, MAX_PARTS)} parts."
            )
        path, ranges = folder / TRAINED_FILE, bounds(count, settings.shards)
        blank, again = _blank(settings, dimension), 0.0
        if path.exists():
            former = _read(path)
            if (type(former), former.d) == (type(blank), dimension):
                index, recall = self._filled(folder, vectors, settings, device)
                again = 1.0
                if recall.mean < settings.min_recall:
                    say(f"what was trained for the index before gives {recall}; it is trained again")
                    again = 0.0
        if not again:
            _faiss().omp_set_num_threads(torch.get_num_threads())
            if not blank.is_trained:
                sample = _sample(vectors, blank, settings.seed)
                with _refused(settings, f"cannot train it on {len(sample):,} vectors"):
                    blank.train(sample)
            _write(blank, path)
            index, recall = self._filled(folder, vectors, settings, device)
        hashes = [digest_file(_part_file(folder, number)) for number in range(len(ranges))]
        write_index_description(
            folder,
            FaissDescription(
                "faiss", dimension, count, "ip", str(factory_of(settings)), index.ef, digest_file(path), hashes
            ),
        )
        return {"ef": index.ef, "trained_before": again, **recall.metrics()}

    def _filled(
        self, folder: Path, vectors: Vectors, settings: IndexSettings, device: str
    ) -> tuple[FaissParts, Recall]:
        """Add the rows to copies of what was trained, one for each part, write the parts and measure the recall."""
        faiss, parts = _faiss(), list[tuple[int, FaissIndex]]()
        faiss.omp_set_num_threads(torch.get_num_threads())
        with progress(len(vectors), "adding to the faiss index", "vectors") as bar:
            for number, (first, stop) in enumerate(bounds(len(vectors), settings.shards)):
                part = _read(folder / TRAINED_FILE)
                for _, rows in chunks(vectors[first:stop]):
                    with _refused(settings, "cannot add rows to it"):
                        part.add(np.ascontiguousarray(rows))
                    bar.advance(len(rows))
                _write(part, _part_file(folder, number))
                parts.append((first, FaissIndex(_map(_part_file(folder, number)), vectors[first:stop])))
        index = FaissParts(parts, vectors, WIDTHS[0])
        return index, reach_recall(index, vectors, settings, device, WIDTHS)

    def remedy(self, settings: IndexSettings) -> str:
        return (
            f"Take a --factory that keeps more of a vector than {factory_of(settings)}, such as one with SQ8 or Flat in place of "
            f"PQ,{' leave --ef out,' if settings.ef else ''} or --type int8"
        )

    def size(self, settings: IndexSettings, rows: int, dimension: int) -> int:
        blank = _blank(settings, dimension)
        return int(rows * (_code_bytes(blank, dimension) + 8))

    def open(self, folder: Path, description: IndexDescription, vectors: Vectors, device: str) -> Index:
        return self.open_part(folder, description, vectors, device, 0, 1)

    def open_part(
        self, folder: Path, description: IndexDescription, vectors: Vectors, device: str, part: int, parts: int
    ) -> MergedIndex:
        assert isinstance(description, FaissDescription)
        ranges, opened = bounds(len(vectors), len(description.sha256)), list[tuple[int, FaissIndex]]()
        for number in range(part, len(ranges), parts):
            path, (first, stop) = _part_file(folder, number), ranges[number]
            if not path.is_file() or digest_file(path) != description.sha256[number]:
                raise InputError(
                    f"{path} is missing or damaged (its SHA-256 is not the one in index.json). Build the index again."
                )
            own = _map(path)
            if (own.d, own.ntotal) != (description.dimension, stop - first):
                raise InputError(f"{path} holds {own.ntotal} vectors of dimension {own.d}. Build the index again.")
            opened.append((first, FaissIndex(own, vectors[first:stop])))
        return FaissParts(opened, vectors, description.ef)


def _faiss() -> FaissLibrary:
    try:
        return importlib.import_module("faiss")
    except ImportError as error:
        raise ResourceError(
            f"An index of type faiss needs the package faiss-cpu, which cannot be imported here ({error}). "
            "Install it with `pip install 'realmctl[faiss]'`."
        ) from None


def _code_bytes(blank: Any, dimension: int) -> int:
    """Bytes that an index keeps of a vector, with its links in a graph."""
    try:
        return int(blank.sa_code_size())
    except RuntimeError:  # a graph, beside the index that keeps the vectors
        graph = _faiss().downcast_index(blank)
        links = graph.hnsw.nb_neighbors(0) if hasattr(graph, "hnsw") else getattr(getattr(graph, "nsg", None), "R", 64)
        return 4 * int(links) + (int(graph.storage.sa_code_size()) if hasattr(graph, "storage") else 4 * dimension)


def factory_of(settings: IndexSettings) -> str | None:
    """What `--factory` says."""
    return FaissOptions.of(vars(settings)).factory


def _blank(settings: IndexSettings, dimension: int) -> FaissPart:
    """Return the index that `--factory` describes, without rows and untrained.

    Its codes are not ordered for polysemous search, which nothing here does: annealing the order takes most of the training's time.
    It is silent about few rows for each centroid, since the recall is measured.
    """
    faiss = _faiss()
    with _refused(settings, f"makes no index of inner products over {dimension} dimensions of it"):
        inner = blank = faiss.index_factory(dimension, factory_of(settings), faiss.METRIC_INNER_PRODUCT)
    while wrapped := getattr(inner, "index", None) or getattr(inner, "base_index", None):
        inner = faiss.downcast_index(wrapped)
    if hasattr(inner, "do_polysemous_training"):
        inner.do_polysemous_training = False
    clusterings: list[FaissPart] = [inner, getattr(inner, "pq", None)]
    for clustered in clusterings:
        if hasattr(clustered, "cp"):
            clustered.cp.min_points_per_centroid = 1
    return blank


@contextmanager
def _refused(settings: IndexSettings, what: str) -> Iterator[None]:
    """Raise ConfigError for what faiss refuses, with its reason and without its C++."""
    try:
        yield
    except RuntimeError as error:
        reason = one_line(RuntimeError(IN_CPP.sub("", str(error))))
        raise ConfigError(f"--factory {factory_of(settings)}: faiss {what} ({reason}).") from None


def _sample(vectors: Vectors, blank: FaissPart, seed: int) -> NDArray[np.float32]:
    faiss = _faiss()
    try:
        lists = faiss.extract_index_ivf(blank).nlist
    except RuntimeError:
        lists = 0
    size = min(len(vectors), max(SAMPLED_ROWS, SAMPLED_PER_LIST * lists))
    rows = np.sort(np.random.default_rng(seed).choice(len(vectors), size, replace=False))
    return np.ascontiguousarray(vectors[rows], np.float32)


def _part_file(folder: Path, number: int) -> Path:
    return folder / f"part-{number:03d}.faiss"


def _write(part: FaissPart, path: Path) -> None:
    try:
        _faiss().write_index(part, str(path))
    except RuntimeError as error:
        raise ResourceError(f"faiss cannot write {path}: {one_line(error)}") from None


def _map(path: Path) -> FaissPart:
    """Open a part. A large one is mapped, and its lists are read where they lie: faiss would start 32 threads at each search that read them ahead."""
    faiss = _faiss()
    if path.stat().st_size <= IN_MEMORY:
        return _read(path)
    part = _read(path, faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
    inverted = faiss.try_extract_index_ivf(part)
    if inverted is not None:
        lists = faiss.downcast_InvertedLists(inverted.invlists)
        if isinstance(lists, faiss.OnDiskInvertedLists):
            lists.prefetch_nthread = 0
    return part


def _read(path: Path, flags: int = 0) -> FaissPart:
    try:
        return _faiss().read_index(str(path), flags)
    except RuntimeError as error:
        raise InputError(f"faiss cannot read {path} ({one_line(error)}). Build the index again.") from None
