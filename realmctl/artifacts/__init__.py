"""Artifacts: folders that record what they were made from, and are visible only when they are complete.

In the order of reading:

    manifest.py     what an artifact is and was made from; checks of a manifest that another person may have written
    artifact.py     opening and verifying
    writer.py       writing and committing
    series.py       numbered versions, one writer at a time; unfinished.py: runs that were killed, and resuming them
    lineage.py      what belongs together; description.py: small JSON files that say what an artifact is
    lease.py        readers tell `realmctl gc` what is in use
    catalogue.py    `ls`, `show` and `verify`; catalogue_text.py, file_kinds.py
    records.py, arrays.py    texts and numbers in files
    folder.py, hashing.py, disk.py, temporary.py    names and files of a folder, hashes and seals, safe reads and durable writes
"""

from realmctl.artifacts.artifact import Artifact, newest_version, open_artifact, verify, version_numbers
from realmctl.artifacts.folder import MANIFEST
from realmctl.artifacts.lineage import (
    lineage_of,
    require_descent,
    require_same_vocabulary,
    require_titles,
    tokenizer_folder,
    vocabulary_of,
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
    "vocabulary_of",
    "write_manifest",
    "writing",
]
