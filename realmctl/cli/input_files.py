"""Input files of commands. Standard input and pipes are copied to temporary files first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from realmctl.artifacts.temporary import temporary_folder
from realmctl.pipeline.sources import localise


@contextmanager
def on_disk(*paths: Path) -> Iterator[list[Path]]:
    """Yield the paths, with temporary copies in place of standard input (`-`) and pipes."""
    with temporary_folder() as spool:
        yield [localise(each, (), False, "input", spool) for each in paths]
