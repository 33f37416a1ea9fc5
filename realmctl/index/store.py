"""An index on disk: `vectors.npy`, `index.json` that says what is there, and for hnsw the graph `hnsw.bin`.

Only `open_index` reads the folder, so nothing is searched that was not first held against its description.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from realmctl.errors import InputError
from realmctl.index.exact import ExactIndex
from realmctl.index.hnsw import HnswIndex, load_graph
from realmctl.index.hnsw_file import Shape
from realmctl.index.protocol import Index
from realmctl.index.vectors import VECTORS_FILE, open_vectors
from realmctl.storage.hashing import digest_file

DESCRIPTION_FILE = "index.json"
GRAPH_FILE = "hnsw.bin"
IndexType = Literal["exact", "hnsw"]


@dataclass(frozen=True)
class Description:
    """`index.json` of an exact index, and what every index has. `metric` is always the inner product."""

    type: str
    dimension: int
    count: int
    metric: str = "ip"


@dataclass(frozen=True)
class HnswDescription(Description):
    """`index.json` of an hnsw index: all that its file does not say or hnswlib forgets, and its hash."""

    m: int = 16
    ef_construction: int = 200
    ef: int = 64
    seed: int = 0
    threads: int = 1
    max_level: int = 0
    entry_point: int = 0
    sha256: str = ""

    @property
    def shape(self) -> Shape:
        """What the graph file must look like."""
        return Shape(self.count, self.dimension, self.m, self.ef_construction, self.max_level, self.entry_point)


def write_description(folder: Path, description: Description) -> None:
    """Write `index.json`."""
    (folder / DESCRIPTION_FILE).write_text(json.dumps(asdict(description), indent=1) + "\n")


def read_description(folder: Path) -> Description:
    """`index.json`, every field checked. Raises InputError when it does not describe an index."""
    path = folder / DESCRIPTION_FILE
    try:
        fields = json.loads(path.read_text())
        kind = {"exact": Description, "hnsw": HnswDescription}[fields["type"]]
        description = kind(**fields)
        _check(description)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} does not describe an index ({error}). Build the index again.") from None
    return description


def open_index(folder: Path, device: str = "cpu") -> Index:
    """The index in a folder, ready to search; an exact one on `device`, a graph always on the CPU.

    Raises InputError when a file is missing or damaged, MismatchError when the files are not of one index,
    and ResourceError when hnswlib or memory is missing.
    """
    description = read_description(folder)
    vectors = open_vectors(folder / VECTORS_FILE, count=description.count, dimension=description.dimension)
    if not isinstance(description, HnswDescription):
        return ExactIndex(vectors, device)
    path = folder / GRAPH_FILE
    if not path.is_file() or digest_file(path) != description.sha256:
        raise InputError(
            f"The graph {path} is missing or damaged (its SHA-256 is not the one in index.json). Build the index again."
        )
    return HnswIndex(load_graph(path, description.shape, vectors), vectors, description.ef)


def _check(description: Description) -> None:
    least: dict[str, Any] = {"dimension": 1, "count": 1, "m": 2, "ef_construction": 1, "ef": 1, "threads": 1}
    for name, value in asdict(description).items():
        wanted = str if name in ("type", "metric", "sha256") else int
        if type(value) is not wanted or (wanted is int and value < least.get(name, 0)):
            raise ValueError(f"{name} is {value!r}")
    if description.metric != "ip":
        raise ValueError(f"metric is {description.metric!r}, and only 'ip' is searched")
    if isinstance(description, HnswDescription) and description.entry_point >= description.count:
        raise ValueError(f"entry_point is {description.entry_point} of {description.count} vectors")
