"""The versions of a server: which blocks and index are served, and how an edit makes the next ones.

An edit runs the stages revise, embed and build-index, as from Python or on the command line, in temporary folders of the three
series. Their artifacts become versions together, when all three are whole: the index before the blocks, so that the newest blocks
have their index. Meanwhile the edit holds the lock of each series, so that no other run writes a version that the edit has not
seen. An edit that fails or is killed leaves the versions as they were.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact, newest_version, version_numbers
from realmctl.artifacts.artifact import pinned_version, versions_in
from realmctl.artifacts.series import (
    adopt,
    commit_finished_runs,
    locked,
    meant_version,
    series_folder,
)
from realmctl.artifacts.temporary import temporary_folder
from realmctl.errors import ConfigError, InputError, LockedError
from realmctl.index.settings import index_settings
from realmctl.index.vectors import VECTORS_FILE, open_vectors
from realmctl.log import say, untold
from realmctl.pipeline import Named, flag_of, resolve
from realmctl.pipeline.choosing import fitting, make_index_hint
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

    def same_as(self, other: ServedVersion) -> bool:
        """Return whether both have the same blocks and the same index."""
        contents = [None if one.index is None else one.index.content for one in (self, other)]
        return self.name == other.name and contents[0] == contents[1]


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
    qa_model, model: the models, as paths or opened; None if there is none. `model` may be a retriever alone; it embeds edited
        blocks.
    trained: the models that were named as series, and series that are not there yet. A newer version is told, and served after a restart.
    """

    blocks: Path
    embeddings: Path
    indexes: Path
    qa_model: Path | Artifact | None
    model: Path | Artifact | None
    trained: tuple[Path, ...] = ()

    def folders(self) -> list[Path]:
        """Return the folders in which the artifacts and their series lie."""
        models = [one if isinstance(one, Path) else one.path for one in (self.qa_model, self.model) if one is not None]
        return [each.parent for each in (self.blocks, self.embeddings, self.indexes, *models, *self.trained)]

    def newest(self) -> ServedVersion:
        """Return the newest blocks and index that fit the models (`realmctl.pipeline.choosing`).

        A revision that was killed leaves blocks without an index. Such blocks are not served.

        Raises:
            InputError: there are no blocks.
            MismatchError: no version of the blocks has an index for the models.
        """
        return self.fitting()[0]

    def fitting(self) -> tuple[ServedVersion, Artifact | None, Artifact | None]:
        """Return the served version, the qa-model and the pre-trained model, which fit each other. See `newest`."""
        models = {"qa_model": (self.qa_model, ("qa-model",)), "model": (self.model, ("model", "retriever"))}
        named = {
            name: Named(place, kinds, flag_of(name)) for name, (place, kinds) in models.items() if place is not None
        }
        chosen = fitting(self.blocks, models=named, indexes=self.indexes)
        asked, filled, index = (chosen.get(name) for name in ("qa_model", "model", "index"))
        if index is None:
            index = next((one.part("index") for one in (asked, filled) if one and "index" in one.manifest.parts), None)
        blocks = chosen["blocks"]
        assert blocks is not None
        return ServedVersion(blocks, index), asked, filled

    def held(self) -> tuple[object, ...]:
        """Return what a look at the folders of blocks and indexes shows: versions and pins. It changes with every new version, and when one is the newest again."""
        return tuple((versions_in(series), pinned_version(series)) for series in (self.blocks, self.indexes))

    def models_now(self) -> dict[str, str]:
        """Return {series: version} of the versions that the models' series stand for now."""
        return {str(series): meant_version(series).name for series in self.trained if version_numbers(series)}

    def check_edits(self, version: ServedVersion) -> None:
        """Check that edits of this version can be embedded and indexed.

        Raises MismatchError or ConfigError.
        """
        if pinned_version(version.blocks.path.parent) is not None:
            raise ConfigError(
                f"{version.blocks.path.parent} is pinned to a version, and an edit makes a newer one. Run `realmctl pin --remove "
                f"{version.blocks.path.parent}`, or leave out --allow-edits."
            )
        written = [version.blocks.path.parent, *([self.embeddings, self.indexes] if version.index else [])]
        for series in written:
            if series.exists() and not os.access(series, os.W_OK | os.X_OK):
                raise ConfigError(
                    f"--allow-edits: this user may not write into {series}. Let a user serve who may, or leave out --allow-edits."
                )
        if version.index is not None:
            self._embed(version.index, version.blocks, version.blocks).check()
        with temporary_folder() as folder:
            Revise(blocks=version.blocks, edits=folder / "edits.jsonl").check()

    def require_newest(self, version: ServedVersion) -> None:
        """Raise LockedError if the blocks are not the newest of their series. Only under its lock does this stay true."""
        newest = newest_version(version.blocks.path.parent)
        if newest.name != version.blocks.path.name:
            raise LockedError(
                f"Another process wrote {newest.name}, and {version.name} is served here. {newest.name} is served within "
                f"seconds if it has an index; otherwise run {make_index_hint(newest, self._maker())}."
            )

    def _maker(self) -> Path | str:
        model = self.model.path if isinstance(self.model, Artifact) else self.model
        return model or "RETRIEVER"

    def edit(self, version: ServedVersion, edits: Sequence[Mapping[str, Any]]) -> Edited:
        """Apply edits (realmctl.corpus.edits) to a version, and return the next one.

        Raises:
            InputError: an edit cannot be applied, or no block would be left.
            LockedError: another run is writing one of the series, or has written newer blocks.
            ResourceError: memory or disk space ran out.
            QualityError: the recall of the index is below its floor.
        """
        blocks_series = version.blocks.path.parent
        with ExitStack() as held:
            held.enter_context(locked(blocks_series))
            commit_finished_runs(blocks_series)
            self.require_newest(version)
            folder = held.enter_context(temporary_folder(blocks_series))
            if version.index is not None:
                for series, kind in ((self.embeddings, "embeddings"), (self.indexes, "index")):
                    held.enter_context(locked(series_folder(series, kind)))
                places = [held.enter_context(temporary_folder(each)) for each in (self.embeddings, self.indexes)]
            with untold():
                blocks = _revised(version.blocks, edits, folder)
                if version.index is None:
                    made = [(blocks_series, blocks)]
                else:
                    embeddings = self._embed(version.index, version.blocks, blocks).make_in(places[0] / "made")
                    settings = index_settings().of(version.index.settings)
                    index = BuildIndex(embeddings=embeddings, **vars(settings)).make_in(places[1] / "made")
                    made = [(self.embeddings, embeddings), (self.indexes, index), (blocks_series, blocks)]
            versions = _published(made)
        say(f"edit: made {', '.join(str(one.path) for one in versions)}")
        if version.index is None:
            return Edited(ServedVersion(versions[-1], None), embedded=0, taken_over=0)
        counts = versions[0].metrics
        return Edited(ServedVersion(versions[2], versions[1]), int(counts["embedded"]), int(counts["taken_over"]))

    def _embed(self, former: Artifact, former_blocks: Artifact, blocks: Artifact) -> Embed:
        """The stage that embeds `blocks`, and takes over the vectors of the index `former` of `former_blocks`."""
        if self.model is None:
            raise ConfigError("--allow-edits needs the pre-trained model whose retriever embeds blocks: --model.")
        model = resolve(self.model, ("model", "retriever"))
        half = open_vectors(former.file(VECTORS_FILE)).dtype.itemsize == 2
        return Embed(
            blocks=blocks,
            retriever=resolve(model, ("retriever",)),
            former=former,
            former_blocks=former_blocks,
            dtype="float16" if half else "float32",
            precision=model.settings.get("precision", "auto"),
        )


def _revised(blocks: Artifact, edits: Sequence[Mapping[str, Any]], folder: Path) -> Artifact:
    path = folder / "edits.jsonl"
    path.write_text("".join(f"{json.dumps(edit)}\n" for edit in edits), encoding="utf-8")
    try:
        return Revise(blocks=blocks, edits=path, workers=1).make_in(folder / "made")
    except InputError as error:
        raise InputError(re.sub(rf"^{re.escape(str(path))}:\d+: ", "", str(error))) from error


def _published(made: Sequence[tuple[Path, Artifact]]) -> list[Artifact]:
    """Make artifacts the next versions of their series, all or none. The locks are held."""
    versions = list[Artifact]()
    try:
        for series, artifact in made:
            versions.append(adopt(series, artifact))
    except BaseException:
        for (_, artifact), version in zip(made, versions, strict=False):
            version.path.rename(artifact.path)
        raise
    return versions
