"""The process that reads Parquet files of the hub for `hub` and writes their rows as JSON lines, in the memory that `realmctl.inputs.reader_process` has.

Argument: a JSON list of the files and the columns, in that order. Without columns, all are written that hold no bytes.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

from realmctl.inputs.reader_process import limited, parquet_batches, write_rows


def main(files: list[str], columns: list[str]) -> None:
    def write() -> None:
        from huggingface_hub import HfFileSystem

        hub = HfFileSystem()
        for path in files:
            with hub.open(path, "rb", block_size=2**22, cache_type="readahead") as file:
                write_rows(parquet_batches(file, partial(_chosen, path.rpartition("/")[2], columns))[1])

    limited(write)


def _chosen(file: str, columns: list[str], schema: Any) -> list[str]:
    """Return the columns to read of a file."""
    names = [str(name) for name in schema.names]
    if missing := [name for name in columns if name not in names]:
        raise ValueError(f"{file} has no column {missing[0]}, but {', '.join(names)}")
    chosen = columns or [name for name in names if "binary" not in str(schema.field(name).type)]
    if not chosen:
        raise ValueError(f"{file} has no column without bytes, but {', '.join(names)}")
    return chosen


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
