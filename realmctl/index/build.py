"""Build an index from a folder with `vectors.npy`. `build-index` and the index refresh both call this.

The vectors are checked first, then the type of index builds its files. An index below the required recall is refused before
it can be searched.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np

from realmctl.artifacts.temporary import temporary_folder
from realmctl.errors import InputError, QualityError
from realmctl.index.index_type import DESCRIPTION_FILE, chosen_type, open_index, read_index_description
from realmctl.index.protocol import Vectors
from realmctl.index.recall import RecallSample
from realmctl.index.settings import IndexSettings
from realmctl.index.vectors import VECTORS_FILE, check_finite, open_vectors
from realmctl.log import say
from realmctl.pipeline.trial import NotTried, Trial

TRIAL_ROWS = 10_000
"""A trial builds an index of so many rows, or of all where there are fewer."""


def try_to_build(vectors: Vectors, settings: IndexSettings, device: str = "cpu") -> Trial:
    """Tell how long `build` takes, from an index of rows that are evenly spaced.

    The time counts as growing with the rows. That of a graph grows a little faster.

    Raises:
        NotTried: The index needs more rows than the sample has.
    """
    count = len(vectors)
    rows = np.linspace(0, count - 1, min(count, TRIAL_ROWS)).astype(np.int64)
    begin = time.monotonic()
    with temporary_folder() as folder:
        np.save(folder / VECTORS_FILE, vectors[rows])
        start = time.monotonic()
        try:
            build(folder, settings, device)
        except (InputError, QualityError) as error:
            if len(rows) == count:
                raise
            raise NotTried(f"an index of {len(rows):,} rows cannot be built: {error}") from None
        seconds = time.monotonic() - start
        return Trial(start - begin, seconds / max(1, len(rows)), count, "vectors")


def build(folder: Path, settings: IndexSettings, device: str = "cpu", former: Path | None = None) -> dict[str, float]:
    """Build the index of `folder/vectors.npy` in that folder, and return its metrics. Exact search runs on `device`.

    `former` is the folder of an index of earlier vectors: the files that its type keeps, such as what was trained, are used
    again. An index of another type, or one that is gone, is not used.

    Raises:
        ConfigError: the settings do not go together.
        InputError: a vector is not finite.
        QualityError: the recall is below `min_recall`. The folder then has no index.json.
        ResourceError: a package, memory or disk space is missing.
    """
    index_type = chosen_type(settings)
    vectors = open_vectors(folder / VECTORS_FILE)
    check_finite(vectors, str(folder / VECTORS_FILE))
    if former is not None and index_type.kept:
        try:
            if isinstance(read_index_description(former), index_type.description):
                for name in index_type.kept:
                    shutil.copyfile(former / name, folder / name)
        except (InputError, OSError) as error:
            say(f"the index before, {former}, cannot be used again: {error}")
    count, dimension = vectors.shape
    metrics = {"rows": count, "dimension": dimension, **index_type.build(folder, vectors, settings, device)}
    if "recall" not in metrics:
        recall = RecallSample.of(settings, vectors, device).measure(open_index(folder, device).search)
        say(f"recall@{recall.k} of the {settings.type} index: {recall}")
        metrics |= recall.metrics()
    if metrics["recall"] < settings.min_recall:
        (folder / DESCRIPTION_FILE).unlink()
        width = f" at ef {metrics['ef']}" if "ef" in metrics else ""
        raise QualityError(
            f"The {settings.type} index finds only {metrics['recall']:.1%} of the true {metrics['recall_k']:g} nearest blocks"
            f"{width}, below the floor of {settings.min_recall:.0%}, so no index was made. {index_type.remedy(settings)}; "
            "--min-recall lowers the floor."
        )
    return metrics
