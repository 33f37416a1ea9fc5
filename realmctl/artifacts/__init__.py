"""Artifacts: folders that record what they were made from, and are visible only when they are complete."""

from realmctl.artifacts.artifact import Artifact, newest_version, open_artifact, verify, version_numbers
from realmctl.artifacts.folder import MANIFEST
from realmctl.artifacts.lineage import (
    lineage_of,
    require_descent,
    require_same_vocabulary,
    require_titles,
    tokenizer_folder,
)
from realmctl.artifacts.manifest import Manifest, Origin, write_manifest
from realmctl.artifacts.writer import Writer, publish, writing

__all__ = [
    "MANIFEST",
    "Artifact",
    "Manifest",
    "Origin",
    "Writer",
    "lineage_of",
    "newest_version",
    "open_artifact",
    "publish",
    "require_descent",
    "require_same_vocabulary",
    "require_titles",
    "tokenizer_folder",
    "verify",
    "version_numbers",
    "write_manifest",
    "writing",
]
