"""Matrices for index tests, and the brute force that every search is held against."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from realmctl.index.build import IndexOptions, build


def clustered(count: int = 400, dimension: int = 16, seed: int = 0) -> np.ndarray:
    """Float32 rows around a few centres, as embeddings of blocks lie."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(10, dimension))
    rows = centres[random.integers(0, 10, count)] + 0.4 * random.normal(size=(count, dimension))
    return rows.astype(np.float32)


def brute_force(vectors: np.ndarray, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Every score in float64, every row sorted in Python: falling score, ties by rising id."""
    scores = queries.astype(np.float64) @ vectors.astype(np.float64).T
    ids = [sorted(range(len(vectors)), key=lambda i: (-row[i], i))[:k] for row in scores]
    return np.array([row[own] for row, own in zip(scores, ids, strict=True)]), np.array(ids)


def folder_with(folder: Path, vectors: np.ndarray) -> Path:
    """A folder as `build` wants it."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "vectors.npy", vectors)
    return folder


def built(folder: Path, vectors: np.ndarray, **options: object) -> Path:
    """A folder with a whole index; hnsw unless told."""
    build(folder_with(folder, vectors), IndexOptions(**options))  # type: ignore[arg-type]
    return folder
