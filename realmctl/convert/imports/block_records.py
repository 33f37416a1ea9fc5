"""Read `block_records.npy` of the published checkpoints: the texts of the blocks, in the order of the index.

The file is an array of Python objects, which NumPy writes as a pickle after the `.npy` header. It is never unpickled;
pickled_texts.py interprets it.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from realmctl.convert.imports.pickled_texts import PickleInterpreter
from realmctl.errors import InputError, one_line


def read_records(path: Path) -> tuple[int, Iterator[str]]:
    """Return the number of records, and an iterator over their texts. Bytes are decoded as UTF-8.

    The part before the first record is checked at once, the rest while it is read. Raises InputError for a file that is
    missing, cut short, or not a one-dimensional array of bytes or str.
    """
    count, start = _header(path)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if not count:
        raise InputError(f"{path} holds no records. Download the file again.")
    next(PickleInterpreter(path, mapped, start, count).records())
    return count, PickleInterpreter(path, mapped, start, count).records()


def _header(path: Path) -> tuple[int, int]:
    """Return the number of records, and the position of the pickle in the file."""
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"it is of version {version}")
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            start = file.tell()
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} is not a .npy file: {one_line(error)}. Get the file again.") from None
    if dtype != np.dtype(object) or len(shape) != 1 or not 0 <= shape[0] <= path.stat().st_size:
        raise InputError(
            f"{path} holds {dtype} of shape {list(shape)}, where block records are a one-dimensional array of "
            "bytes or str (dtype object). Name the block_records.npy of a REALM checkpoint."
        )
    return int(shape[0]), start
