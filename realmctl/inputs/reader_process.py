"""The process that reads one Parquet or Arrow file for `rows` and writes its rows as JSON lines.

A file of 30 KiB can ask for gigabytes of memory, and a damaged one can crash a library. So a process of its own reads
it, with a limit on its memory. Arguments: the file, and the names of the columns to read. The first line of the output
is the list of all columns. Each further line is an object with the values of one row.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from realmctl.errors import one_line

MEMORY_BYTES = 3 * 2**30
ROW_BYTES = 16 * 2**20
ROWS_AT_ONCE = 64
FAILED = 3


def main(path: str, names: Sequence[str]) -> None:
    limited(lambda: _write_file(path, names))


def limited(write: Callable[[], None]) -> None:
    """Write rows in a limited memory. Where that fails, end this process with `FAILED` and the reason on stderr."""
    with suppress(ImportError):  # Windows has no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    import pyarrow

    try:
        write()
    except BrokenPipeError:
        return
    except MemoryError:
        _fail(f"a few of its rows need more than {MEMORY_BYTES // 2**30} GiB of memory")
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
        _fail(one_line(error))


def _fail(reason: str) -> None:
    sys.stderr.write(reason)
    sys.exit(FAILED)


def _write_file(path: str, names: Sequence[str]) -> None:
    with open(path, "rb") as file:  # noqa: PTH123 (pathlib is one more import in each of these processes)
        is_parquet = file.read(4) == b"PAR1"
    wanted = {*names}
    columns, batches = (
        parquet_batches(path, lambda schema: [name for name in schema.names if {name, name.lower()} & wanted])
        if is_parquet
        else _arrow(path, wanted)
    )
    print(json.dumps(columns))
    write_rows(batches)


def write_rows(batches: Iterator[Any]) -> None:
    """Write each row of these batches of pyarrow as a JSON object on a line."""
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


def parquet_batches(source: Any, choose: Callable[[Any], list[str]]) -> tuple[list[str], Iterator[Any]]:
    """Return the columns of a path or an open file, and batches of those that `choose` takes of its schema."""
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(source, buffer_size=2**20, pre_buffer=False)
    schema = file.schema_arrow
    return list(schema.names), file.iter_batches(ROWS_AT_ONCE, columns=choose(schema), use_threads=False)


def _arrow(path: str, wanted: set[str]) -> tuple[list[str], Iterator[Any]]:
    from pyarrow import OSFile, ipc

    with open(path, "rb") as file:  # noqa: PTH123
        is_stream = file.read(6) != b"ARROW1"
    open_ = ipc.open_stream if is_stream else ipc.open_file
    columns = list(open_(OSFile(path)).schema.names)
    chosen = [number for number, name in enumerate(columns) if {name, name.lower()} & wanted]
    batches = open_(OSFile(path), options=ipc.IpcReadOptions(included_fields=chosen, use_threads=False))
    if is_stream:
        return columns, iter(batches)
    return columns, (batches.get_batch(number) for number in range(batches.num_record_batches))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
