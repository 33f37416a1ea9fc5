"""Find the artifacts of a report, and the blocks that a scores artifact was made with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from realmctl.artifacts import MANIFEST, Artifact, catalogue, open_artifact, require_descent, version_numbers
from realmctl.errors import InputError, MismatchError
from realmctl.extras.report.charts import CHARTS
from realmctl.extras.report.comparing import Comparison, compare, runs_at
from realmctl.extras.report.curves import METRICS
from realmctl.pipeline.comparing import known_in
from realmctl.pipeline.discovery import own_stages


def reported(paths: Sequence[Path]) -> list[Artifact]:
    """Return the artifacts of a report, each once. A path is a version, a series, or a folder of series.

    Raises MismatchError for an artifact without curves and scores, InputError for a folder without any artifact that has them.
    """
    found = [artifact for path in paths for artifact in _below(path)]
    return list({artifact.path.resolve(): artifact for artifact in found}.values())


def compared(paths: Sequence[Path], workspace: Path) -> list[Comparison]:
    """Return the tables of `realmctl compare` for the runs at these paths: of a series all versions, whose curves are not shown."""
    runs = [run for run in runs_at(paths) if _is_reportable(run)]
    if len(runs) < 2:
        return []
    known = known_in([workspace, *(run.path.parent.parent for run in runs)])
    headlines = {name: stage.headline for name, stage in own_stages().items()}
    tables = compare([(str(run.path), run.manifest) for run in runs], known, headlines)
    return [table for table in tables if table.settings or any(len(row.versions) > 1 for row in table.rows)]


def _below(path: Path) -> list[Artifact]:
    if (path / MANIFEST).is_file() or version_numbers(path):
        artifact = open_artifact(path)
        if not _is_reportable(artifact):
            raise MismatchError(
                f"{artifact} has neither curves nor scores. Choose an artifact of a training stage or of eval-em."
            )
        return [artifact]
    series = {version.path.parent for version in catalogue.listing(path)}
    newest = [open_artifact(folder) for folder in sorted(series) if version_numbers(folder)]
    if not any(map(_is_reportable, newest)):
        raise InputError(
            f"{path} holds no artifact of a training stage or of eval-em. Run one, or name another folder."
        )
    return [artifact for artifact in newest if _is_reportable(artifact)]


def _is_reportable(artifact: Artifact) -> bool:
    return artifact.kind == "scores" or is_training(artifact)


def is_training(artifact: Artifact) -> bool:
    """Return whether the artifact was made by a training run and holds its log."""
    return artifact.kind in CHARTS and artifact.has(METRICS)


def blocks_of(scores: Artifact, named: Path | None, workspace: Path) -> Artifact | None:
    """Return the blocks that were searched: those specified, else those in the workspace or beside the scores.

    Returns None when there are none.

    Raises MismatchError when the scores were made with other blocks than those specified.
    """
    if named:
        blocks = open_artifact(named)
        require_descent(scores, blocks)
        return blocks
    return catalogue.near(scores, workspace).get(scores.lineage.get("blocks", ""))
