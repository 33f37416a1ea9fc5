"""A new file or folder that appears under its name only when it is whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from realmctl.artifacts.place import require_place
from realmctl.artifacts.temporary import temporary_folder
from realmctl.errors import ConfigError


@contextmanager
def new_path(path: Path) -> Iterator[Path]:
    """Yield a path to write in a folder beside `path`. At the end it is renamed to `path`, or removed after an error or a kill.

    Raises ConfigError when `path` exists and is not an empty folder, and when it lies in an artifact or in a series.
    """
    absolute = path.absolute()
    empty = path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    if not path.name or ((path.exists() or path.is_symlink()) and not empty):
        raise ConfigError(f"{path} exists already. Export to a new file or folder.")
    require_place(path, str(path))
    absolute.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(absolute.parent) as beside:
        yield beside / path.name
        if empty:
            path.rmdir()
        (beside / path.name).rename(absolute)
