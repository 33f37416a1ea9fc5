"""A type of index, and an index on disk: `vectors.npy`, `index.json` that describes it, and the other files of its type.

`open_index` checks all files against the description before the index can be searched.
Types of index are found by name, so that other packages can add some (docs/extending.md).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from realmctl.artifacts.typed_json import read_as
from realmctl.errors import ConfigError, InputError
from realmctl.index.merged import MergedIndex
from realmctl.index.names import INDEX_TYPES
from realmctl.index.protocol import Index, Vectors
from realmctl.index.settings import IndexSettings, NoOptions
from realmctl.index.vectors import VECTORS_FILE, open_vectors
from realmctl.pipeline.settings import Settings

DESCRIPTION_FILE = "index.json"
SHARDS = "-shards"
"""What a type in shards has after its name, where its description is another."""
MAX_VECTORS, MAX_DIMENSION = 2**32, 2**20


@dataclass(frozen=True)
class IndexDescription:
    """Content of `index.json`: the fields that every index has. `metric` is always the inner product.

    A type of index that records more extends this class with fields of type int, float, str or list.
    """

    type: str
    dimension: int
    count: int
    metric: str = "ip"

    def check(self) -> None:
        """Raise ValueError for values that cannot describe an index."""
        if self.dimension < 1 or self.count < 1:
            raise ValueError(f"it has {self.count} vectors of dimension {self.dimension}")
        if self.dimension > MAX_DIMENSION or self.count > MAX_VECTORS:
            raise ValueError(f"it has more than {MAX_VECTORS:,} vectors, or more than {MAX_DIMENSION:,} dimensions")
        if self.metric != "ip":
            raise ValueError(f"metric is {self.metric!r}, and only 'ip' is searched")


class IndexType(ABC):
    """One type of index: how it is built from vectors, and how it is opened."""

    description: ClassVar[type[IndexDescription]] = IndexDescription
    """The class of its `index.json`."""
    options: ClassVar[type[Settings]] = NoOptions
    """The settings that `--option NAME=VALUE` gives; `settings.options_of(self.options)` has their values."""
    kept: ClassVar[tuple[str, ...]] = ()
    """Files that an index refresh copies from the index before into the folder, before it calls `build`."""

    @abstractmethod
    def build(self, folder: Path, vectors: Vectors, settings: IndexSettings, device: str) -> Mapping[str, float]:
        """Write the files of the index beside `vectors.npy`, and its description with `write_index_description`.

        The vectors are finite. Returns metrics; without a `recall` among them, the recall of the finished index is measured.
        An index whose recall is below the floor is refused.
        """

    def remedy(self, settings: IndexSettings) -> str:
        """What to do about a recall below the floor; a part of a sentence."""
        return "Use --type exact"

    @classmethod
    def in_shards(cls) -> type[IndexType] | None:
        """The type of such an index with `--shards`: this one, or one whose description has `-shards` after the name. None: there is none."""
        return None

    def size(self, settings: IndexSettings, rows: int, dimension: int) -> int:
        """Return the bytes of the files beside `vectors.npy`, estimated before the build."""
        return 0

    @abstractmethod
    def open(self, folder: Path, description: IndexDescription, vectors: Vectors, device: str) -> Index:
        """Open the index in a folder that `build` wrote. Raises InputError for files that are missing or damaged."""

    def open_part(
        self, folder: Path, description: IndexDescription, vectors: Vectors, device: str, part: int, parts: int
    ) -> MergedIndex:
        """Open part number `part` of `parts`, a share of the rows. Raises what `open` raises, and ConfigError."""
        raise ConfigError(
            f"{folder} is an index of type {description.type}, which cannot be divided over processes. Use an exact or int8 index, "
            "or `build-index --type hnsw --shards N`, or leave --index-shards out."
        )


def chosen_type(settings: IndexSettings) -> IndexType:
    """Return the type of index that the settings name. Raises ConfigError for settings that do not go together."""
    settings.check_index()
    whole = INDEX_TYPES.load(settings.type, IndexType)
    index_type = whole.in_shards() if settings.shards > 1 else whole
    if index_type is None:
        raise ConfigError(
            f"--shards {settings.shards}: an index of type {settings.type} is not saved in shards. An exact or int8 index is divided "
            "when it is opened (--index-shards). Leave --shards out."
        )
    settings.options_of(index_type.options)
    return index_type()


def write_index_description(folder: Path, description: IndexDescription) -> None:
    """Write `index.json`."""
    (folder / DESCRIPTION_FILE).write_text(json.dumps(asdict(description), indent=1) + "\n")


def read_index_description(folder: Path) -> IndexDescription:
    """Read `index.json` and check every field. Raises InputError when it does not describe an index that can be opened here."""
    path = folder / DESCRIPTION_FILE

    def kind(table: Mapping[str, Any]) -> type[IndexDescription]:
        return _type_of(str(table.get("type"))).description

    try:
        return read_as(
            path, kind, "an index", "Build the index again.", lambda described: described.check(), whole=True
        )
    except ConfigError as error:
        raise InputError(f"{path} cannot be opened here: {error}") from None


def open_index(folder: Path, device: str = "cpu") -> Index:
    """Open the index in a folder. An exact or int8 index searches on `device`, others always on the CPU.

    Raises:
        InputError: a file is missing or damaged.
        MismatchError: the files do not belong to one index.
        ResourceError: memory or the package of its type is missing.
    """
    index_type, description, vectors = _read(folder)
    return index_type.open(folder, description, vectors, device)


def open_part(folder: Path, device: str, part: int, parts: int) -> tuple[MergedIndex, int]:
    """Open one of several parts of an index, and return it with the number of rows of the whole index.

    Raises:
        ConfigError: An index of this type cannot be divided.
        InputError, MismatchError, ResourceError: As `open_index`.
    """
    index_type, description, vectors = _read(folder)
    return index_type.open_part(folder, description, vectors, device, part, parts), description.count


def _read(folder: Path) -> tuple[IndexType, IndexDescription, Vectors]:
    description = read_index_description(folder)
    vectors = open_vectors(folder / VECTORS_FILE, count=description.count, dimension=description.dimension)
    return _type_of(description.type)(), description, vectors


def _type_of(name: str) -> type[IndexType]:
    """The type that an `index.json` names."""
    plain = name.removesuffix(SHARDS)
    found = INDEX_TYPES.load(plain, IndexType)
    return (found.in_shards() if plain != name else None) or INDEX_TYPES.load(name, IndexType)
