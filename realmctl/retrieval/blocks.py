"""Where the blocks of an artifact are found."""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts import Artifact
from realmctl.artifacts.artifact import VERSION_NAME
from realmctl.artifacts.manifest import is_artifact
from realmctl.artifacts.series import readable_versions
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.pipeline import resolve

BlocksLike = Path | str | Artifact | Corpus
"""The values that `blocks=` accepts: a series, a version, an open artifact or opened blocks."""


def blocks_for(artifact: Artifact, blocks: BlocksLike | None) -> Artifact:
    """Return the blocks that an artifact was made from.

    They are `blocks` if it is passed, else the matching version in the series `blocks` beside the artifact's series.

    Raises:
        InputError: no blocks are passed, and the series beside the artifact's series does not contain them.
        MismatchError: `blocks` is of another kind.
    """
    if blocks is not None:
        return resolve(blocks.artifact if isinstance(blocks, Corpus) else blocks, ("blocks",))
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
