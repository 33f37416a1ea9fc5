"""`realmctl export` of a ranking: a copy of its TREC run, for trec_eval, Pyserini, ranx and other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact, verify
from realmctl.errors import ConfigError
from realmctl.storage.durable import copy_file

RUN_FILE = "run.trec"


def export_run(ranking: Artifact, path: Path) -> dict[str, Any]:
    """Copy the run of a ranking to the new file `path`. Return a summary.

    Raises:
        ConfigError: `path` exists, or its folder does not.
        InputError: the ranking is damaged.
    """
    if path.exists() or not path.absolute().parent.is_dir():
        why = "exists already" if path.exists() else "lies in a folder that does not exist"
        raise ConfigError(f"{path} {why}. Export a ranking to a new file in an existing folder, such as run.trec.")
    verify(ranking)
    copy_file(ranking.file(RUN_FILE), path)
    return {"path": str(path), "from": str(ranking.path), "kind": ranking.kind, "side": None, "loads_in": ["trec_eval"]}
