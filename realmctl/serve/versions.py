"""The versions of a server: which blocks and index are served, and how an edit makes the next ones.

An edit runs the stages revise, embed and build-index, as from Python or on the command line. Each commits its artifact as a
whole, so an edit that fails or is killed leaves the version that is served.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact, open_artifact
from realmctl.artifacts.artifact import VERSION_NAME
from realmctl.artifacts.series import readable_versions
from realmctl.artifacts.temporary import temporary_folder
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.index.settings import IndexSettings
from realmctl.index.vectors import VECTORS_FILE, open_vectors
from realmctl.log import say
from realmctl.pipeline import resolve
from stages.build_index import BuildIndex
from stages.embed import Embed
from stages.revise import Revise


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
class Edited:
    """A new version, and how many of its blocks were embedded and taken over."""

    version: ServedVersion
    embedded: int
    taken_over: int


@dataclass(frozen=True, kw_only=True)
class Versions:
    """Where versions are looked for, and written by edits.

    blocks: a version, or the series whose newest version with an index is served.
    embeddings, indexes: the series of embeddings and of indexes.
    own: the index inside the model; None if it searches none.
    model: the pre-trained model whose retriever embeds edited blocks; None if there is none.
    """

    blocks: Path
    embeddings: Path
    indexes: Path
    own: Artifact | None
    model: Artifact | None

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
        retriever = self.own.lineage.get("retriever")
        made = [one for one in readable_versions(self.indexes) if one.kind == "index"]
        fitting = [self.own, *(one for one in made if one.lineage.get("retriever") == retriever)]
        indexes = {index.lineage.get("blocks"): index for index in fitting}
        named = VERSION_NAME.fullmatch(self.blocks.name)
        for blocks in [newest] if named else reversed(readable_versions(newest.path.parent)):
            if (index := indexes.get(blocks.content)) is not None:
                if blocks.path != newest.path:
                    say(f"{newest.path} has no index in {self.indexes}, so {blocks.path} is served")
                return ServedVersion(blocks, index)
        raise MismatchError(
            f"No version of {self.blocks} has an index that was made with the retriever of {self.own.path.parent}, in the "
            f"model or in {self.indexes}. Run `realmctl embed` and `realmctl build-index`, or name other --blocks."
        )

    def check_edits(self, version: ServedVersion) -> None:
        """Check that edits of this version can be embedded and indexed.

        Raises MismatchError or ConfigError.
        """
        if version.index is not None:
            self._embed(version.index, version.blocks, version.blocks).check()
        with temporary_folder() as folder:
            Revise(blocks=version.blocks, edits=folder / "edits.jsonl").check()

    def edit(self, version: ServedVersion, edits: Sequence[Mapping[str, Any]]) -> Edited:
        """Apply edits (realmctl.corpus.edits) to a version, and return the next one.

        An edit that is made, undone and made again is a new version each time, and not the old one found again, because the
        newest version is the one that is served: the file of edits begins with a blank line for each version there is.

        Raises:
            InputError: an edit cannot be applied, or no block would be left.
            LockedError: another run is writing one of the series.
            ResourceError: memory or disk space ran out.
            QualityError: the recall of the index is below its floor.
        """
        series = version.blocks.path.parent
        with temporary_folder() as folder:
            path = folder / "edits.jsonl"
            lines = [*[""] * len(readable_versions(series)), *map(json.dumps, edits)]
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            try:
                blocks = Revise(blocks=version.blocks, edits=path, workers=1).make(series)
            except InputError as error:
                raise InputError(re.sub(rf"^{re.escape(str(path))}:\d+: ", "", str(error))) from error
        if version.index is None:
            return Edited(ServedVersion(blocks, None), embedded=0, taken_over=0)
        embeddings = self._embed(version.index, version.blocks, blocks).make(self.embeddings)
        settings = IndexSettings.of(version.index.settings)
        index = BuildIndex(embeddings=embeddings, **vars(settings)).make(self.indexes)
        counts = embeddings.metrics
        return Edited(ServedVersion(blocks, index), int(counts["embedded"]), int(counts["taken_over"]))

    def _embed(self, former: Artifact, former_blocks: Artifact, blocks: Artifact) -> Embed:
        """The stage that embeds `blocks`, and takes over the vectors of the index `former` of `former_blocks`."""
        if self.model is None:
            raise ConfigError("--allow-edits needs the pre-trained model whose retriever embeds blocks: --model.")
        half = open_vectors(former.file(VECTORS_FILE)).dtype.itemsize == 2
        return Embed(
            blocks=blocks,
            retriever=resolve(self.model, ("retriever",)),
            former=former,
            former_blocks=former_blocks,
            dtype="float16" if half else "float32",
            precision=self.model.settings.get("precision", "auto"),
        )
