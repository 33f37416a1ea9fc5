"""How to build an index: the settings of `build-index` and `build-datastore`, and of every index refresh."""

from __future__ import annotations

from realmctl.errors import ConfigError
from realmctl.index.names import INDEX_TYPES
from realmctl.pipeline.fields import setting
from realmctl.pipeline.settings import Settings


class IndexSettings(Settings):
    """How to build an index and how to measure its recall."""

    type: str = setting(
        "Type of index. hnsw: approximate graph search, fast. exact: scores every row. Other names come from plug-ins.",
        default="hnsw",
        choices=INDEX_TYPES.names,
    )
    m: int = setting("hnsw: links per vector. More links raise recall and memory.", default=16, at_least=2, at_most=512)
    ef_construction: int = setting(
        "hnsw: width of the beam during the build. A wider beam is slower and raises recall.", default=200, at_least=1
    )
    ef: int | None = setting(
        "hnsw: width of the beam during search. Default: the narrowest of 64 to 1024 that reaches --min-recall.",
        default=None,
        at_least=1,
    )
    recall_k: int = setting("Number of neighbours that the recall counts.", default=8, at_least=1)
    recall_sample: int = setting("Number of queries sampled to measure the recall.", default=1000, at_least=1)
    min_recall: float = setting(
        "Lowest recall at which the index is written, as a share.", default=0.95, at_least=0, at_most=1
    )
    seed: int = setting("Seed of the graph's levels and of the sampled queries.", default=0, at_least=0)
    threads: int = setting(
        "hnsw: threads of the build. With more than one thread, each build writes different bytes.",
        default=1,
        at_least=1,
    )
    shards: int = setting(
        "hnsw: number of graphs, each over a range of the rows. They are built in parallel, searched together, and can be "
        "divided over the processes of a training (--index-shards).",
        default=1,
        at_least=1,
    )

    def check_index(self) -> None:
        """Raise ConfigError for settings that do not go together."""
        if self.shards > 1 and self.type != "hnsw":
            raise ConfigError(
                f"--shards {self.shards}: only an hnsw index is saved in shards. An exact index is divided when it is opened "
                "(--index-shards). Leave --shards out."
            )
