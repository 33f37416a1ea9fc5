"""Blocks with their texts, and where the blocks of an artifact are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from realmctl.artifacts import Artifact, open_artifact
from realmctl.artifacts.artifact import VERSION_NAME
from realmctl.artifacts.manifest import is_artifact
from realmctl.artifacts.series import readable_versions
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError


@dataclass(frozen=True)
class TextBlock:
    """A block of a corpus: its row, the id it got when the corpus was chunked, its document's title, its text."""

    row: int
    id: str
    title: str
    text: str


class LoadedBlocks(Sequence[TextBlock]):
    """A blocks artifact as a sequence: `len(blocks)`, `blocks[7].text`, `for block in blocks`. Texts stay on disk.

    Examples:
        >>> blocks = realmctl.load("artifacts/blocks")
        >>> blocks[0].title
    """

    def __init__(self, corpus: Corpus) -> None:
        self.artifact, self._corpus = corpus.artifact, corpus

    @classmethod
    def open(cls, path: Path | str | Artifact) -> LoadedBlocks:
        """Open a blocks artifact. Raises InputError when there is none or it is damaged."""
        return cls(Corpus(path if isinstance(path, Artifact) else open_artifact(path)))

    def __len__(self) -> int:
        return len(self._corpus)

    @overload
    def __getitem__(self, row: int) -> TextBlock: ...
    @overload
    def __getitem__(self, row: slice) -> list[TextBlock]: ...
    def __getitem__(self, row: int | slice) -> TextBlock | list[TextBlock]:
        """The block at a row, negative rows from the end. Raises IndexError beyond the last block."""
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        number = range(len(self))[row]
        block = self._corpus.block(number)
        return TextBlock(number, block.id, block.title, block.text)

    def __repr__(self) -> str:
        return f"<{len(self)} blocks at {self.artifact.path}>"


BlocksLike = Path | str | Artifact | LoadedBlocks
"""The values that `blocks=` accepts: a series, a version, an open artifact or loaded blocks."""


def blocks_for(artifact: Artifact, blocks: BlocksLike | None) -> Artifact:
    """Return the blocks that an artifact was made from.

    They are `blocks` if it is passed, else the matching version in the series `blocks` beside the artifact's series.

    Raises:
        InputError: no blocks are passed, and the series beside the artifact's series does not contain them.
    """
    if isinstance(blocks, LoadedBlocks):
        return blocks.artifact
    if blocks is not None:
        return blocks if isinstance(blocks, Artifact) else open_artifact(blocks)
    series, wanted = _series_beside(artifact.path), artifact.lineage.get("blocks")
    found = next((version for version in readable_versions(series) if version.content == wanted), None)
    if found is None:
        raise InputError(
            f"{artifact} needs the blocks it was made from (content {str(wanted)[:12]}) for their "
            f"texts, and {series} does not contain them. Pass them: load(..., blocks=FOLDER)."
        )
    return found


def _series_beside(path: Path) -> Path:
    """`<workspace>/blocks` for `<workspace>/model/v1` and for a part of it, such as `<workspace>/model/v1/index`."""
    outermost = path.resolve()
    while is_artifact(outermost.parent):
        outermost = outermost.parent
    series = outermost.parent if VERSION_NAME.fullmatch(outermost.name) else outermost
    return series.parent / "blocks"
