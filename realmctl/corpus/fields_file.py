"""The files of fields, in blocks whose documents have some.

fields.jsonl.zst   one record for each document that has any: {name: value}, a value as text, number or list of texts
field_rows.npy     int64 [m, 2]; the first block of each of these documents, and the one behind its last
fields.json        {name: type}; a field is of one type in all documents
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np

from realmctl.artifacts import Artifact
from realmctl.artifacts.arrays import ArrayAppender, open_array
from realmctl.artifacts.disk import read_small
from realmctl.artifacts.records import Records, RecordWriter
from realmctl.corpus.fields import NOTHING, Fields, FieldType, Value, kind_of, type_of, typed
from realmctl.errors import InputError, as_realmctl_error
from realmctl.log import warn

TYPES, RECORDS, ROWS = "fields.json", "fields.jsonl.zst", "field_rows.npy"
MOST_FIELDS = 256
"""Different fields of all documents. Further ones are left out."""
MOST_BYTES = 2**20
"""Limit on fields.json."""


class FieldsWriter:
    """Writes the fields of documents, of which blocks come in order. There are no files where no document has fields.

    file: returns the path to write for the name of a file.
    """

    def __init__(self, file: Callable[[str], Path]) -> None:
        self._file, self._kinds = file, defaultdict[str, set[str]](set)
        self._records: RecordWriter | None = None
        self._row, self._begin, self._document = 0, 0, ""
        self._held: Fields = NOTHING
        self._left_out = set[str]()

    def add(self, document: str, fields: Fields) -> None:
        """Add a block: the id of its document, and the fields of that."""
        if document != self._document or not self._row:
            self._write()
            self._document, self._held, self._begin = document, fields, self._row
        self._row += 1

    def _write(self) -> None:
        known = dict[str, Value]()
        for name, value in self._held.items():
            if name in self._kinds or len(self._kinds) < MOST_FIELDS:
                self._kinds[name].add(kind_of(value))
                known[name] = value
            else:
                self._left_out.add(name)
        if not known:
            return
        if self._records is None:
            self._records, self._rows = RecordWriter(self._file(RECORDS)), ArrayAppender(self._file(ROWS), np.int64, 2)
        self._records.write(known)
        self._rows.append([(self._begin, self._row)])

    def close(self, kind: type[BaseException] | None) -> None:
        """Write the last document and the types. kind: what ended the run, if anything did."""
        if kind is None:
            self._write()
        if self._records is None:
            return
        self._records.__exit__(kind)
        self._rows.close()
        types = {name: type_of(kinds) for name, kinds in sorted(self._kinds.items())}
        self._file(TYPES).write_text(json.dumps(types, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        if self._left_out:
            warn(
                f"the documents have more than {MOST_FIELDS} different fields. {', '.join(sorted(self._left_out)[:3])} and others are left out."
            )


class StoredFields:
    """The fields of the documents of blocks. `types` are {name: type}, empty where no document has fields."""

    def __init__(self, blocks: Artifact) -> None:
        self._blocks = blocks
        self.types = types_in(blocks.path / TYPES)

    @cached_property
    def _stored(self) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Records]:
        rows, records = open_array(self._blocks.file(ROWS)), Records(self._blocks.file(RECORDS))
        flat = rows.reshape(-1)
        if rows.dtype != np.int64 or rows.shape != (len(records), 2) or (np.diff(flat) < 0).any() or flat[:1] < 0:
            raise InputError(f"{self._blocks}: {ROWS} does not say which blocks have which fields. Make it again.")
        return rows, records

    def of(self, row: int) -> Fields:
        """Return the fields of a block's document."""
        if not self.types:
            return NOTHING
        rows, records = self._stored
        place = int(np.searchsorted(rows[:, 0], row, "right")) - 1
        return self._typed(records[place]) if place >= 0 and row < rows[place, 1] else NOTHING

    def all(self, names: Collection[str]) -> Iterator[tuple[int, int, Fields]]:
        """Yield for each document with fields the row of its first block, that behind its last, and those of its fields that have these names."""
        if self.types:
            rows, records = self._stored
            for (start, stop), record in zip(rows.tolist(), records, strict=True):
                yield start, stop, self._typed({name: record[name] for name in names if name in record})

    def _typed(self, record: Mapping[str, Any]) -> Fields:
        try:
            return {name: typed(value, self.types[name]) for name, value in record.items()}
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise InputError(
                f"{self._blocks}: a document has fields of another type ({error}). Make it again."
            ) from None


def types_in(path: Path) -> dict[str, FieldType]:
    """Return {name: type} of a fields.json; nothing where there is no such file. Raises InputError for what is none."""
    if not path.exists():
        return {}
    try:
        types = json.loads(read_small(path, MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise as_realmctl_error(error, path) or InputError(f"{path} cannot be read: {error}. Restore it.") from None
    if not isinstance(types, dict) or not all(kind in get_args(FieldType) for kind in types.values()):
        raise InputError(f"{path} does not say the types of fields. Make its artifact again.")
    return types
