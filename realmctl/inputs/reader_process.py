"""The process that reads one Parquet or Arrow file for `rows` and writes its rows as JSON lines.

A file of 30 KiB can ask for gigabytes of memory, and a damaged one can crash a library. So a process of its own reads
it, with a limit on its memory. Arguments: the file, and the names of the columns to read. The first line of the output
is the list of all columns. Each further line is an object with the values of one row.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from realmctl.errors import one_line

MEMORY_BYTES = 3 * 2**30
ROW_BYTES = 16 * 2**20
ROWS_AT_ONCE = 64
FAILED = 3


def main(path: str, names: Sequence[str]) -> None:
    with suppress(ImportError):  # Windows has no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    import pyarrow

    try:
        _write_rows(path, names)
    except BrokenPipeError:
        return
    except MemoryError:
        _fail(f"a few of its rows need more than {MEMORY_BYTES // 2**30} GiB of memory")
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
        _fail(one_line(error))


def _fail(reason: str) -> None:
    sys.stderr.write(reason)
    sys.exit(FAILED)


def _write_rows(path: str, names: Sequence[str]) -> None:
    with open(path, "rb") as file:  # noqa: PTH123 (pathlib is one more import in each of these processes)
        columns, batches = (_parquet if file.read(4) == b"PAR1" else _arrow)(path, names)
    print(json.dumps(columns))
    number = 0
    for batch in batches:
        batch.validate(full=True)
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            for row in batch.slice(start, ROWS_AT_ONCE).to_pylist():
                number += 1
                line = json.dumps(row, default=_plain)
                if len(line) > ROW_BYTES:
                    raise ValueError(f"row {number} holds more than {ROW_BYTES // 2**20} MiB")
                print(line)
    sys.stdout.flush()


def _plain(value: Any) -> str:
    """A date or a time as ISO 8601 writes it, and a decimal number as it is written."""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    if type(value).__name__ == "Decimal":
        return str(value)
    raise ValueError(f"a value is of the type {type(value).__name__}, and text is expected; convert the column")


def _parquet(path: str, names: Sequence[str]) -> tuple[list[str], Iterator[Any]]:
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(path, buffer_size=2**20, pre_buffer=False)
    columns = list(file.schema_arrow.names)
    chosen = [name for name in columns if {name, name.lower()} & {*names}]
    return columns, file.iter_batches(ROWS_AT_ONCE, columns=chosen, use_threads=False)


def _arrow(path: str, names: Sequence[str]) -> tuple[list[str], Iterator[Any]]:
    from pyarrow import OSFile, ipc

    with open(path, "rb") as file:  # noqa: PTH123
        is_stream = file.read(6) != b"ARROW1"
    open_ = ipc.open_stream if is_stream else ipc.open_file
    columns = list(open_(OSFile(path)).schema.names)
    chosen = [number for number, name in enumerate(columns) if {name, name.lower()} & {*names}]
    batches = open_(OSFile(path), options=ipc.IpcReadOptions(included_fields=chosen, use_threads=False))
    if is_stream:
        return columns, iter(batches)
    return columns, (batches.get_batch(number) for number in range(batches.num_record_batches))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
