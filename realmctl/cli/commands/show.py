"""`realmctl show`: one artifact, and what it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from realmctl.artifacts import catalogue
from realmctl.cli.invoke import emit
from realmctl.cli.options import Json, Series, Workspace


def show(artifact: Annotated[Path, Series], workspace: Workspace = Path("artifacts"), json: Json = False) -> None:
    """Print an artifact's manifest, and what it was made from as a tree."""
    emit(catalogue.shown(artifact, workspace), json, catalogue.shown_text)
