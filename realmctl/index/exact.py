"""Exact search: matrix products over chunks of rows, with a running top-k. Other indexes are measured against it.

B queries, K answers, C rows of a chunk, X rows that become float32 at once, D dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.index.index_type import IndexDescription, IndexType, write_index_description
from realmctl.index.merged import MergedIndex, bounds
from realmctl.index.protocol import Index, RowIds, Scores, Vectors, check_queries
from realmctl.index.settings import IndexSettings

QUERIES_AT_ONCE = 512
SCORES_AT_ONCE = 2**22
"""Scores computed at once on a CPU: 16 MB, so that they are still in the cache when the best are picked."""
ROWS_AT_ONCE = 2**17
"""Most rows scored at once. Smaller chunks cost more calls: with 2**14, one query over a million rows took 1.7 times as long."""
ROWS_CONVERTED = 2**12
"""Rows of float16 or int8 that become float32 at once, in memory that is used again and stays in the cache."""
GROUP = 32
Picking = Callable[[Tensor, int, Tensor | None], tuple[Tensor, Tensor, Tensor]]


class ExactIndex:
    """Inner products with every row, in float32 whatever the storage (`realmctl.index.protocol.Index`).

    On an accelerator the vectors are uploaded at the first search and stay there in their storage type.
    """

    def __init__(self, vectors: Vectors | NDArray[np.int8], device: str = "cpu") -> None:
        self._vectors = vectors
        self._device = torch.device(device)
        self._resident: list[tuple[int, Tensor]] = []

    @property
    def dimension(self) -> int:
        return int(self._vectors.shape[1])

    @property
    def count(self) -> int:
        return int(self._vectors.shape[0])

    def vectors(self, ids: RowIds) -> NDArray[np.float32]:
        return np.asarray(self._vectors.take(ids, axis=0), dtype=np.float32)  # half the time of indexing

    def search(self, queries_BD: Vectors, k: int) -> tuple[Scores, RowIds]:
        queries = torch.from_numpy(check_queries(queries_BD, k, dimension=self.dimension))
        k = min(k, self.count)
        if not len(queries):
            return np.empty((0, k), np.float32), np.empty((0, k), np.int64)
        found = [self._search(part, k) for part in torch.split(queries, QUERIES_AT_ONCE)]
        return np.concatenate([scores for scores, _ in found]), np.concatenate([ids for _, ids in found])

    @torch.inference_mode()
    def _search(self, queries_BD: Tensor, k: int) -> tuple[Scores, RowIds]:
        """The answers to one batch of queries. Whether a tie made them arbitrary is read once, behind the last chunk: a GPU is not waited for before."""
        queries_BD = queries_BD.to(self._device)
        scores_BK, ids_BK, tied_B1 = self._best(queries_BD, k, best_columns)
        again = (tied_B1 == scores_BK[:, -1:]).any(1).nonzero().flatten()
        if len(again):
            scores_BK[again], ids_BK[again], _ = self._best(queries_BD[again], k, sorted_columns)
        return scores_BK.cpu().numpy(), ids_BK.cpu().numpy()

    def _best(self, queries_BD: Tensor, k: int, pick: Picking) -> tuple[Tensor, Tensor, Tensor]:
        """Scores and ids of the k best of all chunks, both [B, K], and the highest score at which `pick` chose among equals, [B, 1]."""
        scores_BK = queries_BD.new_empty((len(queries_BD), 0))
        ids_BK = torch.empty((len(queries_BD), 0), dtype=torch.int64, device=self._device)
        tied_B1 = queries_BD.new_full((len(queries_BD), 1), -torch.inf)
        for start, scores_BC in self._scores(queries_BD):
            floor_B1 = scores_BK[:, k - 1 :] if self._device.type == "cpu" and scores_BK.shape[1] == k else None
            scores, ids, tied = pick(scores_BC, k, floor_B1)
            both_scores = torch.cat([scores_BK, scores], dim=1)
            both_ids = torch.cat([ids_BK, ids + start], dim=1)
            # Ids rise from chunk to chunk and the sort is stable, so ties stay in the order of their ids.
            scores_BK, order = both_scores.sort(dim=1, descending=True, stable=True)
            scores_BK, ids_BK, tied_B1 = scores_BK[:, :k], both_ids.gather(1, order[:, :k]), tied_B1.maximum(tied)
        return scores_BK, ids_BK, tied_B1

    def _scores(self, queries_BD: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield (first row, scores [B, C]) chunk by chunk."""
        if self._device.type != "cpu":
            if not self._resident:
                storage = torch.from_numpy(np.asarray(self._vectors)).to(self._device)
                starts = range(0, self.count, ROWS_AT_ONCE)
                self._resident = [(start, storage[start : start + ROWS_AT_ONCE]) for start in starts]
            yield from ((start, queries_BD @ chunk.float().T) for start, chunk in self._resident)
            return
        rows = min(SCORES_AT_ONCE // len(queries_BD), ROWS_AT_ONCE)
        floats_XD = torch.empty((min(ROWS_CONVERTED, self.count), self.dimension))
        for start in range(0, self.count, rows):
            chunk_CD = torch.from_numpy(self._vectors[start : start + rows])
            if chunk_CD.dtype == torch.float32:
                yield start, _products(queries_BD, chunk_CD)
                continue
            scores_BC = queries_BD.new_empty((len(queries_BD), len(chunk_CD)))
            for first in range(0, len(chunk_CD), ROWS_CONVERTED):
                part_XD = chunk_CD[first : first + ROWS_CONVERTED]
                floats = floats_XD[: len(part_XD)].copy_(part_XD)
                scores_BC[:, first : first + ROWS_CONVERTED] = _products(queries_BD, floats)
            yield start, scores_BC


def _products(queries_BD: Tensor, rows_CD: Tensor) -> Tensor:
    """Inner products on the CPU, [B, C]. Of one query NumPy makes them: on an AMD EPYC torch took 72 ms over a million rows, and `np.vecdot` 18."""
    if len(queries_BD) > 1:
        return queries_BD @ rows_CD.T
    return torch.from_numpy(np.vecdot(rows_CD.numpy(), queries_BD.numpy()[0]))[None]


class ExactIndexType(IndexType):
    """Exact search: every vector is scored. Only the vectors are stored."""

    def build(self, folder: Path, vectors: Vectors, settings: IndexSettings, device: str) -> Mapping[str, float]:
        write_index_description(folder, IndexDescription("exact", dimension=vectors.shape[1], count=len(vectors)))
        return {"recall": 1.0}

    def open(self, folder: Path, description: IndexDescription, vectors: Vectors, device: str) -> Index:
        return ExactIndex(vectors, device)

    def open_part(
        self, folder: Path, description: IndexDescription, vectors: Vectors, device: str, part: int, parts: int
    ) -> MergedIndex:
        first, stop = bounds(len(vectors), parts)[part]
        own: list[tuple[int, Index]] = [(first, ExactIndex(vectors[first:stop], device))] if stop > first else []
        return MergedIndex(own, vectors)


def sorted_columns(scores_BC: Tensor, k: int, floor_B1: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """`best_columns` by a full sort: of equal scores the lowest columns are taken, so nothing is arbitrary."""
    scores, ids = scores_BC.sort(dim=1, descending=True, stable=True)
    return scores[:, :k], ids[:, :k], scores.new_full((len(scores), 1), -torch.inf)


def best_columns(scores_BC: Tensor, k: int, floor_B1: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Scores and columns of the k best of each row, by falling score, ties by rising column: both [B, min(k, C)].

    With `floor_B1`, only scores above it are wanted. The answers then have fewer than k columns where no row has k of them. How many have is read from the
    device, so this is for the CPU.

    `torch.topk` is fast, but its choice among equal scores is arbitrary. So one more is looked for. The third tensor, [B, 1], is score k where
    score k + 1 equals it, else -inf: of the columns with that score, others may have been taken.
    """
    if k >= scores_BC.shape[1]:
        return sorted_columns(scores_BC, k)
    if floor_B1 is not None and len(scores_BC) == 1:  # few are above it
        above_X = (scores_BC > floor_B1)[0].nonzero()[:, 0]
        scores, ids, tied_B1 = sorted_columns(scores_BC[:, above_X], k)
        return scores, above_X[ids], tied_B1
    top_scores, top_ids = _top(scores_BC, k + 1, floor_B1)
    ids = top_ids[:, :k].sort(dim=1).values
    scores, order = scores_BC.gather(1, ids).sort(dim=1, descending=True, stable=True)
    tied_B1 = scores.new_full((len(scores), 1), -torch.inf)
    if top_scores.shape[1] > k:
        last_B1 = top_scores[:, k:]
        equal = top_scores[:, k - 1 : k] == last_B1
        tied_B1 = last_B1.where(equal if floor_B1 is None else equal & (last_B1 > floor_B1), -torch.inf)
    return scores, ids.gather(1, order), tied_B1


def _top(scores_BC: Tensor, k: int, floor_B1: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return `scores_BC.topk(k)`, faster for a small k; of the scores above the floor, as many columns as the fullest row has.

    For a small k, `topk` costs as much as the product that made the scores. The k best scores lie in the k groups of
    columns with the highest maxima, and those above the floor in the groups whose maxima are, so only these groups are searched.
    """
    columns = scores_BC.shape[1]
    if floor_B1 is None and 2 * GROUP * k > columns:
        return scores_BC.topk(k, dim=1)
    whole = columns - columns % GROUP
    best_BG = scores_BC[:, :whole].reshape(len(scores_BC), -1, GROUP).amax(2)
    groups = k if floor_B1 is None else min(k, int((best_BG > floor_B1).sum(1).max()))
    if 2 * GROUP * groups > columns:
        return scores_BC.topk(k, dim=1)
    groups_BK = best_BG.topk(groups, dim=1).indices
    within = torch.arange(GROUP, device=scores_BC.device)
    rest = torch.arange(whole, columns, device=scores_BC.device).expand(len(scores_BC), -1)
    columns_BX = torch.cat([(groups_BK[:, :, None] * GROUP + within).flatten(1), rest], dim=1)
    found_BX = scores_BC.gather(1, columns_BX)
    if floor_B1 is not None:
        k = min(k, int((found_BX > floor_B1).sum(1).max()))
    scores_BK, places_BK = found_BX.topk(k, dim=1)
    return scores_BK, columns_BX.gather(1, places_BK)
