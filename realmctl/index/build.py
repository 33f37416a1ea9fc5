"""Build an index from a folder with `vectors.npy`. `build-index` and the index refresh both call this.

The vectors are checked first, then the type of index builds its files. An index below the required recall is refused before
it can be searched.
"""

from __future__ import annotations

from pathlib import Path

from realmctl.errors import QualityError
from realmctl.index.index_type import DESCRIPTION_FILE, IndexType, open_index
from realmctl.index.names import INDEX_TYPES, SHARDED
from realmctl.index.recall import RecallSample
from realmctl.index.settings import IndexSettings
from realmctl.index.vectors import VECTORS_FILE, check_finite, open_vectors
from realmctl.log import say


def build(folder: Path, settings: IndexSettings, device: str = "cpu") -> dict[str, float]:
    """Build the index of `folder/vectors.npy` in that folder, and return its metrics. Exact search runs on `device`.

    Raises:
        ConfigError: the settings do not go together.
        InputError: a vector is not finite.
        QualityError: the recall is below `min_recall`. The folder then has no index.json.
        ResourceError: hnswlib, memory or disk space is missing.
    """
    settings.check_index()
    index_type = INDEX_TYPES.load(SHARDED if settings.shards > 1 else settings.type, IndexType)()
    vectors = open_vectors(folder / VECTORS_FILE)
    check_finite(vectors, str(folder / VECTORS_FILE))
    count, dimension = vectors.shape
    metrics = {"rows": count, "dimension": dimension, **index_type.build(folder, vectors, settings, device)}
    if "recall" in metrics:
        return metrics
    sample = RecallSample(
        vectors, k=settings.recall_k, sample=settings.recall_sample, seed=settings.seed, device=device
    )
    recall = sample.measure(open_index(folder, device).search)
    say(f"recall@{recall.k} of the {settings.type} index: {recall}")
    if recall.mean < settings.min_recall:
        (folder / DESCRIPTION_FILE).unlink()
        raise QualityError(
            f"The {settings.type} index finds only {recall} of the true {recall.k} nearest blocks, below the floor of "
            f"{settings.min_recall:.0%}, so no index was made. Use --type hnsw or --type exact, or lower --min-recall."
        )
    return metrics | recall.metrics()
