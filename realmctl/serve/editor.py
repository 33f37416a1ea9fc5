"""From an edit to the next version: the stages revise, embed and build-index, as on the command line.

Each stage commits its artifact as a whole. An edit that fails or is killed leaves the version that is served.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.artifacts.series import readable_versions
from realmctl.artifacts.temporary import temporary_folder
from realmctl.errors import ConfigError, InputError
from realmctl.index.vectors import VECTORS_FILE, open_vectors
from realmctl.pipeline import resolve
from realmctl.pipeline.fields import roles
from realmctl.serve.versions import ServedVersion
from stages.build_index import BuildIndex
from stages.embed import Embed
from stages.revise import Revise


@dataclass(frozen=True)
class Edited:
    """A new version, and how many of its blocks were embedded and taken over."""

    version: ServedVersion
    embedded: int
    taken_over: int


@dataclass(frozen=True)
class Editor:
    """Writes new versions.

    model: the pre-trained model whose retriever made the index; None where no index of vectors is served.
    embeddings, indexes: the series to write to; blocks go into their own series.
    """

    model: Artifact | None
    embeddings: Path
    indexes: Path

    def check(self, version: ServedVersion) -> None:
        """Check that edits of this version can be embedded and indexed.

        Raises MismatchError or ConfigError.
        """
        if version.index is not None:
            self._embed(version.index, version.blocks, version.blocks).check()
        with temporary_folder() as folder:
            Revise(blocks=version.blocks, edits=folder / "edits.jsonl").check()

    def make(self, version: ServedVersion, edits: Sequence[Mapping[str, Any]]) -> Edited:
        """Apply edits (realmctl.corpus.edits) to a version, and return the next one.

        Raises:
            InputError: an edit cannot be applied, or no block would be left.
            LockedError: another run is writing one of the series.
            ResourceError: memory or disk space ran out.
            QualityError: the recall of the index is below its floor.
        """
        with temporary_folder() as folder:
            path = self._written(folder, version, edits)
            try:
                blocks = Revise(blocks=version.blocks, edits=path, workers=1).make(version.blocks.path.parent)
            except InputError as error:
                raise InputError(re.sub(rf"^{re.escape(str(path))}:\d+: ", "", str(error))) from error
        if version.index is None:
            return Edited(ServedVersion(blocks, None), embedded=0, taken_over=0)
        embeddings = self._embed(version.index, version.blocks, blocks).make(self.embeddings)
        kept = {name for name, role in roles(BuildIndex).items() if role.name == "setting"}
        settings = {name: value for name, value in version.index.settings.items() if name in kept}
        index = BuildIndex(embeddings=embeddings, **settings).make(self.indexes)
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

    def _written(self, folder: Path, version: ServedVersion, edits: Sequence[Mapping[str, Any]]) -> Path:
        """Write the edits to a file, after one blank line for each version there is.

        So an edit that is made, undone and made again is a new version each time, and not the old one found again: the
        newest version is the one that is served.
        """
        blank = "\n" * len(readable_versions(version.blocks.path.parent))
        path = folder / "edits.jsonl"
        path.write_text(blank + "".join(f"{json.dumps(edit)}\n" for edit in edits), encoding="utf-8")
        return path
