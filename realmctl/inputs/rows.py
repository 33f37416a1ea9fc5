"""Stream the rows of a Parquet or Arrow file. Another process reads the file (`reader_process`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from realmctl.errors import InputError, require_package
from realmctl.inputs.reader_process import FAILED

PARQUET, ARROW_FILE, ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
"""First bytes: Parquet, Arrow's IPC file, and Arrow's IPC stream, which `save_to_disk` of datasets writes."""


def is_columnar(start: bytes) -> bool:
    """Return whether a file with these first bytes is a Parquet or an Arrow file."""
    return start.startswith((PARQUET, ARROW_FILE, ARROW_STREAM))


def rows(
    path: Path, names: Sequence[str], needed: Sequence[str], advice: str = "Rename a column."
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet or Arrow file as {column: value}, with the columns that are in `names`.

    Args:
        path: the file. It is read a few rows at a time.
        names: columns to read, where the file has them.
        needed: columns of which the file must have at least one.
        advice: what to do about a file without any of them.

    Raises:
        InputError: the file is damaged, holds too much in one row, or has none of the needed columns.
        ResourceError: pyarrow is not installed.
    """
    require_package("pyarrow", "parquet", f"{path} is a Parquet or Arrow file, and reading it")
    command = [sys.executable, "-P", "-m", "realmctl.inputs.reader_process", str(path.resolve()), *names]
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        try:
            columns = json.loads(child.stdout.readline() or "null")
            if columns is not None and not {*columns} & {*needed}:
                raise InputError(
                    f"{path} has the columns {', '.join(columns) or '(none)'}. It needs one named "
                    f"{' or '.join(needed)}. {advice}"
                )
            for line in child.stdout:
                yield json.loads(line)
        except BaseException:
            child.kill()
            raise
        reason = child.stderr.read().decode(errors="replace").strip()
        if code := child.wait():
            why = reason if code == FAILED else f"reading it ended with code {code}: {reason[-200:] or 'no message'}"
            raise InputError(f"{path} cannot be read: {why}. Get or write the file again.")
