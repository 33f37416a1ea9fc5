"""Artifacts: folders that exist only once whole and say what they were made from."""

from realmctl.artifacts.artifact import Artifact, newest_version, open_artifact, verify, version_numbers
from realmctl.artifacts.lineage import lineage_of, require_descent, require_same_vocabulary, require_titles
from realmctl.artifacts.manifest import MANIFEST, Origin, write_manifest
from realmctl.artifacts.writer import Writer, publish, writing

__all__ = [
    "MANIFEST",
    "Artifact",
    "Origin",
    "Writer",
    "lineage_of",
    "newest_version",
    "open_artifact",
    "publish",
    "require_descent",
    "require_same_vocabulary",
    "require_titles",
    "verify",
    "version_numbers",
    "write_manifest",
    "writing",
]
