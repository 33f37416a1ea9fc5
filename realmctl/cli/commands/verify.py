"""`realmctl verify`: check every hash."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from realmctl.artifacts import catalogue
from realmctl.cli.invoke import emit
from realmctl.cli.options import Json, Series


def verify(artifacts: Annotated[list[Path], Series], json: Json = False) -> None:
    """Recompute every hash of an artifact, parts included."""
    emit({"verified": [catalogue.verified(each) for each in artifacts]}, json, catalogue.verified_text)
