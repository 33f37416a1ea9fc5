"""A format of a corpus: how a file of it is read, and how it is recognised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Found
from realmctl.errors import ConfigError

HEAD_BYTES = 2**16
"""What is read of a file to recognise its format."""


@dataclass(frozen=True)
class Format:
    """A format: its name for messages, and the function that reads a file of it.

    has_fields: Whether the user may name its fields. is_one: Whether a file is one document. is_binary: Whether a file is no text.
    looks: Whether a file is of this format, by its path and its first `HEAD_BYTES`, without a byte order mark and blanks before. Rooms say it; the
    formats of the core are told apart in `detect.py`.
    """

    name: str
    read: Callable[[CorpusFile], Iterator[Found]]
    _: KW_ONLY
    has_fields: bool = False
    is_one: bool = False
    is_binary: bool = False
    looks: Callable[[CorpusFile, bytes], bool] | None = None

    def pages(self, file: CorpusFile) -> Iterator[Found]:
        """Read a file. Raises ConfigError for what is no page: a mistake of who wrote the format."""
        found: Iterable[object] | None = self.read(file)
        for page in [None] if found is None else found:
            if not isinstance(page, Found):
                raise ConfigError(
                    f"{self.read.__module__}, which reads the format {self.name!r}, yields {type(page).__name__}, and a format yields Document or "
                    "Dropped. Correct it there, or name another with --format."
                )
            yield page
