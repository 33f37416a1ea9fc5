"""An hnsw graph updated in place beside one that is built anew, after a share of its vectors changed.

    python benchmarks/index_update.py --rows 20000

Each round changes a share of the rows. "updated": hnswlib gets the new vectors under the same labels, in the graph of the round
before. "rebuilt": `build-index`'s function builds a graph of all vectors. Prints seconds and recall@8 at ef 64 as JSON lines.
"""

import argparse
import json
import time

import numpy as np

from realmctl.extras.hnsw.hnsw import HnswIndex, build_graph
from realmctl.index.exact import ExactIndex

DIMENSION, CENTRES, QUERIES, EF, K = 128, 500, 500, 64, 8


def draw(rows: int, rng: np.random.Generator, centres: np.ndarray) -> np.ndarray:
    """Vectors around centres, as blocks about the same subjects lie."""
    noise = rng.normal(size=(rows, DIMENSION))
    return (centres[rng.integers(CENTRES, size=rows)] + noise).astype(np.float32)


def recall(graph: object, vectors: np.ndarray, queries: np.ndarray) -> float:
    """The share of the true neighbours that the graph finds."""
    _, true = ExactIndex(vectors).search(queries, K)
    _, found = HnswIndex(graph, vectors, EF).search(queries, K)
    return float(np.mean([len(set(a) & set(b)) / K for a, b in zip(true.tolist(), found.tolist(), strict=True)]))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for share in (0.01, 0.05, 0.2):
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(CENTRES, DIMENSION))
        vectors, queries = draw(given.rows, rng, centres), draw(QUERIES, rng, centres)
        updated = build_graph(vectors, 16, 200, 0, 1)
        for number in range(1, given.rounds + 1):
            changed = rng.choice(given.rows, round(share * given.rows), replace=False)
            vectors[changed] = draw(len(changed), rng, centres)
            start = time.monotonic()
            updated.add_items(vectors[changed], changed, num_threads=1)
            updating = time.monotonic() - start
            start = time.monotonic()
            rebuilt = build_graph(vectors, 16, 200, 0, 1)
            rebuilding = time.monotonic() - start
            print(
                json.dumps(
                    {
                        "share": share,
                        "round": number,
                        "update_s": round(updating, 2),
                        "rebuild_s": round(rebuilding, 2),
                        "updated_recall": round(recall(updated, vectors, queries), 4),
                        "rebuilt_recall": round(recall(rebuilt, vectors, queries), 4),
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
