"""Which blocks and which index are served: the newest version of the blocks that has an index of this retriever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from realmctl.artifacts import Artifact, open_artifact
from realmctl.artifacts.artifact import VERSION_NAME
from realmctl.artifacts.series import readable_versions
from realmctl.errors import MismatchError
from realmctl.log import say


@dataclass(frozen=True)
class ServedVersion:
    """Blocks and their index. The index is None where the model searches none."""

    blocks: Artifact
    index: Artifact | None

    @property
    def name(self) -> str:
        """A name that differs for different versions and tells nothing of the machine, such as `v3-0a1b2c3d4e5f`."""
        return f"{self.blocks.path.name}-{self.blocks.content[:12]}"


@dataclass(frozen=True)
class Places:
    """Where versions are looked for.

    blocks: a version, or the series whose newest version with an index is served.
    indexes: the series of indexes.
    own: the index inside the model; None if it searches none.
    """

    blocks: Path
    indexes: Path
    own: Artifact | None

    def newest(self) -> ServedVersion:
        """Return the newest blocks with an index, and their newest index.

        A revision that was killed leaves blocks without an index. Such blocks are not served.

        Raises:
            InputError: there are no blocks.
            MismatchError: no version of the blocks has an index.
        """
        newest = open_artifact(self.blocks)
        if self.own is None:
            return ServedVersion(newest, None)
        indexes = {index.lineage.get("blocks"): index for index in self._indexes(self.own)}
        for blocks in self._blocks(newest):
            if (index := indexes.get(blocks.content)) is not None:
                if blocks.path != newest.path:
                    say(f"{newest.path} has no index in {self.indexes}, so {blocks.path} is served")
                return ServedVersion(blocks, index)
        raise MismatchError(
            f"No version of {self.blocks} has an index that was made with the retriever of {self.own.path.parent}, in the "
            f"model or in {self.indexes}. Run `realmctl embed` and `realmctl build-index`, or name other --blocks."
        )

    def _indexes(self, own: Artifact) -> Iterator[Artifact]:
        """The model's own index, then those of the series by the same retriever, oldest first."""
        yield own
        for index in readable_versions(self.indexes):
            if index.kind == "index" and index.lineage.get("retriever") == own.lineage.get("retriever"):
                yield index

    def _blocks(self, newest: Artifact) -> list[Artifact]:
        if VERSION_NAME.fullmatch(self.blocks.name):
            return [newest]
        return list(reversed(readable_versions(newest.path.parent)))
