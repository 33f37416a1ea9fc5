"""An artifact that `realmctl import` makes: a version with a recipe, so that the same command finds it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact, Origin, Writer, lineage_of, series
from realmctl.pipeline.making import make_version, write_version
from realmctl.pipeline.sources import digest_of, provenance_of, require_unchanged, states_of

Files = Path | tuple[Path, ...] | None
VERSION = 2
"""Part of the recipe. It increases when the same files give another artifact than before."""


def make_imported(
    out: Path,
    kind: str,
    write: Callable[[Writer], Mapping[str, Any]],
    *,
    sources: Mapping[str, Files],
    settings: Mapping[str, object] | None = None,
    inputs: Mapping[str, Artifact] | None = None,
) -> Artifact:
    """Return the artifact of this recipe in the series `out`: a version that exists, or one that `write` writes.

    Args:
        out: Folder of the series.
        kind: Kind of the artifact.
        write: Writes the files and returns the metrics.
        sources: Files that were read, by role. Their content is part of the recipe, and so are `settings`.
        inputs: Artifacts that were read, by role.
    """
    artifacts = inputs or {}

    def states() -> dict[Path, tuple[int, int, int]]:
        return {file: state for files in sources.values() for file, state in states_of(files, ()).items()}

    def finish(writer: Writer) -> Artifact:
        writer.check_sources = lambda: require_unchanged(seen, states(), folder)
        return write_version(writer, write, artifacts.values())

    seen = states()
    folder = series.series_folder(out, kind)
    return make_version(folder, imported_origin(kind, sources, settings, artifacts), finish)


def imported_origin(
    kind: str,
    sources: Mapping[str, Files],
    settings: Mapping[str, object] | None = None,
    inputs: Mapping[str, Artifact] | None = None,
) -> Origin:
    """Return what an imported artifact is made from. This reads all sources to hash them. The arguments are those of `make_imported`."""
    artifacts = inputs or {}
    digests = {name: digest_of(files, ()) for name, files in sources.items() if files is not None}
    return Origin(
        kind,
        "import",
        VERSION,
        settings or {},
        {name: artifact.content for name, artifact in artifacts.items()} | digests,
        lineage_of(artifacts),
        sources={name: provenance_of(files, ()) for name, files in sources.items() if files is not None},
    )
