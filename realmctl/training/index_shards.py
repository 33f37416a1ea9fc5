"""An index that is divided over the processes that train together (`--index-shards`)."""

from __future__ import annotations

from pathlib import Path

from realmctl.execution import processes
from realmctl.index.index_type import open_index, open_part
from realmctl.index.merged import IndexOfProcesses
from realmctl.index.protocol import Index
from realmctl.training import data_parallel


def open_own_shard(folder: Path, device: str = "cpu") -> Index:
    """Open this process's part of an index, which is searched together with those of the other processes.

    Raises:
        ConfigError: The index cannot be divided: its type cannot be, or it is of another package's type.
        InputError, MismatchError, ResourceError: As `open_index`.
    """
    if processes.world_size() == 1:
        return open_index(folder, device)
    own, count = open_part(folder, device, processes.rank(), processes.world_size())
    return IndexOfProcesses(own, count, data_parallel.gather_rows, processes.rank())
