"""The run of a ranking, for trec_eval, Pyserini, ranx and other tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.artifacts.durable import copy_file

RUN_FILE = "run.trec"


def write_run(ranking: Artifact, path: Path) -> Mapping[str, Any]:
    """Copy the TREC run of a ranking to the new file `path`."""
    copy_file(ranking.file(RUN_FILE), path)
    return {"loads_in": ["trec_eval"]}
