"""What a report is of: the artifacts that a user names, or those of a workspace, and the blocks behind a score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from realmctl.artifacts import MANIFEST, Artifact, catalogue, open_artifact, require_descent, version_numbers
from realmctl.errors import InputError, MismatchError
from realmctl.report.charts import CHARTS
from realmctl.report.curves import METRICS


def reported(paths: Sequence[Path]) -> list[Artifact]:
    """The artifacts of a report, each once: every path is a version, a series, or a folder of series.

    Raises MismatchError for an artifact that says nothing of a run, InputError for a folder without one that does.
    """
    found = [artifact for path in paths for artifact in _below(path)]
    return list({artifact.path.resolve(): artifact for artifact in found}.values())


def _below(path: Path) -> list[Artifact]:
    if (path / MANIFEST).is_file() or version_numbers(path):
        artifact = open_artifact(path)
        if not _tells(artifact):
            raise MismatchError(
                f"{artifact} has neither curves nor scores. Name what a training stage or eval-em made."
            )
        return [artifact]
    series = {Path(entry["path"]).parent for entry in catalogue.listing(path)}
    newest = [open_artifact(folder) for folder in sorted(series) if version_numbers(folder)]
    if not any(map(_tells, newest)):
        raise InputError(
            f"{path} holds nothing that a training stage or eval-em made. Run one, or name another folder."
        )
    return [artifact for artifact in newest if _tells(artifact)]


def _tells(artifact: Artifact) -> bool:
    return artifact.kind == "scores" or is_training(artifact)


def is_training(artifact: Artifact) -> bool:
    """Whether it is of a training run that kept its log."""
    return artifact.kind in CHARTS and artifact.has(METRICS)


def blocks_of(scores: Artifact, named: Path | None, workspace: Path) -> Artifact | None:
    """The blocks that were searched: those named, or those of the workspace or beside the scores; None if they are gone.

    Raises MismatchError for blocks that the scores are not of.
    """
    if named:
        blocks = open_artifact(named)
        require_descent(scores, blocks)
        return blocks
    return catalogue.near(scores, workspace).get(scores.lineage.get("blocks", ""))
