"""What the folder of a published model holds: its JSON files and its tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, overload

from realmctl.errors import InputError, as_realmctl_error
from realmctl.tokens.names import TOKENIZER_FILES

MAX_JSON_BYTES = 16 * 2**20


def tokenizer_files(folder: Path) -> tuple[Path, ...]:
    """Return the tokenizer files of a folder. Raises InputError when there is no vocabulary."""
    found = tuple(folder / name for name in TOKENIZER_FILES if (folder / name).is_file())
    if not any(path.name in TOKENIZER_FILES[:2] for path in found):
        raise InputError(
            f"{folder} holds no tokenizer: neither tokenizer.json nor vocab.txt. Name the folder or hub id of the "
            "BERT whose vocabulary it has: --tokenizer bert-base-uncased."
        )
    return found


@overload
def read_json(path: Path) -> dict[str, Any]: ...
@overload
def read_json(path: Path, kind: type[list[Any]]) -> list[Any]: ...
def read_json(path: Path, kind: type[Any] = dict) -> Any:
    """Return the object, or the list, in a small JSON file. Raises InputError when it cannot be read or holds something else."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ValueError(f"it has more than {MAX_JSON_BYTES:,} bytes")
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, kind):
            raise ValueError(f"it is not a JSON {'list' if kind is list else 'object'}")
    except (OSError, ValueError, RecursionError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"Cannot read {path}: {error}. A model is a folder with config.json and weights."
        ) from None
    return found
