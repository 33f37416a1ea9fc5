"""How to build an index: the settings of `build-index` and `build-datastore`, and of every index refresh."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from realmctl.errors import ConfigError
from realmctl.index.names import INDEX_TYPES
from realmctl.pipeline.fields import roles, setting
from realmctl.pipeline.settings import Settings, extended
from realmctl.pipeline.values import LARGEST_INT

Options = TypeVar("Options", bound=Settings)
Kind = type[Options]


def check_depths(flag: str, depths: tuple[int, ...]) -> None:
    """Check the depths of the recall. Raises ConfigError."""
    if not depths:
        raise ConfigError(f"{flag}: a recall counts 1 neighbour or more.")


def check_pairs(flag: str, pairs: tuple[str, ...]) -> None:
    """Check the spelling NAME=VALUE. Raises ConfigError."""
    for pair in pairs:
        if not pair.partition("=")[0].isidentifier() or "=" not in pair:
            raise ConfigError(f"{flag} {pair!r} is not NAME=VALUE.")


class NoOptions(Settings):
    """Those of a type of index without options."""


class IndexSettings(Settings):
    """How to build an index and how to measure its recall."""

    type: str = setting(
        "Type of index. exact: scores every row. hnsw: approximate graph search. int8: scores an 8-bit copy of every row, then the best rows themselves. faiss: what --factory describes. Other names come from plug-ins.",
        default="exact",
        choices=INDEX_TYPES.names,
    )
    ef: int | None = setting(
        "hnsw: width of the beam during search. faiss: nprobe of an inverted file, efSearch of a graph. Default: the narrowest "
        "that reaches --min-recall.",
        default=None,
        at_least=1,
    )
    option: tuple[str, ...] = setting(
        "NAME=VALUE of an option that the type of a plug-in declares. Repeatable.",
        default=(),
        check=check_pairs,
        advanced=True,
    )
    recall_k: tuple[int, ...] = setting(
        "Numbers of neighbours that the recall counts; the lowest recall is that of the index. Repeatable.",
        default=(8, 100),
        at_least=1,
        check=check_depths,
        advanced=True,
    )
    recall_sample: int = setting(
        "Number of queries sampled to measure the recall.", default=1000, at_least=1, advanced=True
    )
    min_recall: float = setting(
        "Lowest recall at which the index is written, as a share.", default=0.95, at_least=0, at_most=1, advanced=True
    )
    seed: int = setting(
        "Seed of the graph's levels and of the sampled queries.",
        default=0,
        at_least=0,
        at_most=LARGEST_INT,
        advanced=True,
    )
    shards: int = setting(
        "hnsw, faiss: number of indexes, each over a range of the rows, which the processes of a training can divide (--index-shards).",
        default=1,
        at_least=1,
        advanced=True,
    )

    def check_index(self) -> None:
        """Raise ConfigError for settings that do not go together, and ResourceError for a type whose package is missing."""
        if self.option and self.type in INDEX_TYPES.built_in:
            raise ConfigError(f"--option {self.option[0]}: the options of --type {self.type} have flags of their own.")

    def options_of(self, kind: Kind[Options]) -> Options:
        """Return what `--option` says, as the settings that the type of a plug-in declares (`IndexType.options`).

        Raises:
            ConfigError: An option has another name, or its value does not fit.
        """
        values = {name: value for name, _, value in (pair.partition("=") for pair in self.option)}
        if unknown := values.keys() - roles(kind).keys():
            known = ", ".join(roles(kind)) or "none"
            raise ConfigError(f"--option {min(unknown)}: the options of the index type {self.type!r} are: {known}.")
        return kind.of(values)


@cache
def index_settings() -> type[IndexSettings]:
    """The settings with the options that rooms add, such as those of an index that was built."""
    return extended("build-index")(IndexSettings)
