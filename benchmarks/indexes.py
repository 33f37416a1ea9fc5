"""Types of index side by side: time of build and refresh, memory, time of a search, recall at 8 and at 100.

    python benchmarks/indexes.py --rows 1000000 --folder /tmp/indexes

Synthetic vectors of 128 dimensions around centres. "refresh_s" builds an index of vectors that moved a little, with the first
index as the one before, as a refresh during training does. The recall gate is a part of both.
Times are CPU times of this process, so that other work on the machine does not count; with one thread they are those of a free core.
"searched_mb" are the bytes that a search reads: the vectors, or the files beside them. Prints JSON lines.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from realmctl.artifacts.arrays import ArrayAppender
from realmctl.index.build import build
from realmctl.index.exact import ExactIndex
from realmctl.index.index_type import open_index
from realmctl.index.settings import IndexSettings
from realmctl.index.vectors import ROWS_PER_CHUNK, VECTORS_FILE, open_vectors
from realmctl.log import set_quiet

DIMENSION, QUERIES, DRIFT = 128, 200, 0.05


def write(folder: Path, rows: int, seed: int) -> None:
    """Vectors around rows / 200 centres, each moved a little with `seed`: another seed is the same corpus after training."""
    folder.mkdir(parents=True, exist_ok=True)
    rng, moved = np.random.default_rng(0), np.random.default_rng(seed)
    centres = rng.standard_normal((max(10, rows // 200), DIMENSION), np.float32)
    file = ArrayAppender(folder / VECTORS_FILE, np.float32, DIMENSION)
    for start in range(0, rows, ROWS_PER_CHUNK):
        count = min(ROWS_PER_CHUNK, rows - start)
        own = centres[rng.integers(len(centres), size=count)] + 0.6 * rng.standard_normal(
            (count, DIMENSION), np.float32
        )
        file.append(own + DRIFT * moved.standard_normal((count, DIMENSION), np.float32))
    file.close()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, required=True, help="where vectors and indexes are written")
    parser.add_argument("--types", default="exact,int8,faiss,hnsw")
    parser.add_argument("--factory", default="IVF4096,PQ64")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    set_quiet(True)
    write(given.folder / "before", given.rows, 1)
    write(given.folder / "after", given.rows, 2)
    vectors = open_vectors(given.folder / "after" / VECTORS_FILE)
    noise = np.random.default_rng(3).standard_normal((QUERIES, DIMENSION), np.float32)
    queries = vectors[:: len(vectors) // QUERIES][:QUERIES] + 0.4 * noise
    true = ExactIndex(vectors).search(queries, 100)[1]
    for kind in given.types.split(","):
        settings = IndexSettings(type=kind, factory=given.factory if kind == "faiss" else None)
        seconds = {}
        for folder, former in (("before", None), ("after", given.folder / "before")):
            start = time.process_time()
            metrics = build(given.folder / folder, settings, former=former)
            seconds[folder] = time.process_time() - start
        beside = [
            path for path in (given.folder / "after").iterdir() if path.name not in (VECTORS_FILE, "trained.faiss")
        ]
        size = sum(path.stat().st_size for path in beside)
        index = open_index(given.folder / "after")
        index.search(queries[:8], 8)
        start = time.process_time()
        found = index.search(queries, 100)[1]
        batch = time.process_time() - start
        start = time.process_time()
        for query in queries[:50]:
            index.search(query[None], 8)
        single = (time.process_time() - start) / 50
        recall = {
            k: float(
                np.mean([len({*a[:k]} & {*b[:k]}) / k for a, b in zip(true.tolist(), found.tolist(), strict=True)])
            )
            for k in (8, 100)
        }
        print(
            json.dumps(
                {
                    "type": kind,
                    "rows": given.rows,
                    "build_s": round(seconds["before"], 1),
                    "refresh_s": round(seconds["after"], 1),
                    "searched_mb": round((vectors.nbytes if kind == "exact" else size) / 1e6, 1),
                    "one_query_ms": round(1000 * single, 2),
                    "query_of_200_ms": round(1000 * batch / QUERIES, 2),
                    "recall@8": round(recall[8], 4),
                    "recall@100": round(recall[100], 4),
                    "ef": metrics.get("ef"),
                }
            ),
            flush=True,
        )
        for path in beside:
            path.unlink()


if __name__ == "__main__":
    main()
