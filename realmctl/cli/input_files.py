"""Input files of commands, with standard input and pipes copied to disk first."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from realmctl.stage.sources import localise


@contextmanager
def on_disk(*paths: Path) -> Iterator[list[Path]]:
    """The paths of files, with standard input (`-`) and pipes as files of their own."""
    with tempfile.TemporaryDirectory() as spool:
        yield [localise(each, (), False, "input", Path(spool)) for each in paths]
