"""`realmctl pin`: let a series stand for one version."""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts import catalogue, open_artifact
from realmctl.artifacts.place import is_series
from realmctl.artifacts.series import pin as pin_version
from realmctl.artifacts.series import unpin
from realmctl.errors import InputError
from realmctl.pipeline import InWorkspace, Show, argument, setting


class Pin(InWorkspace):
    """Let a series stand for this version instead of for its newest, in every command, in serve and in Python.

    gc keeps the pinned version, and ls marks it. A series has one pinned version.
    """

    version: Path = argument(
        "A version, such as qa-model/v2. With --remove, a series or a version of it.", completes=True
    )
    remove: bool = setting("Let the series stand for its newest version again.", default=False)

    def run(self, show: Show) -> None:
        place = catalogue.in_workspace(self.version, self.workspace)
        series = place.parent if is_series(place.parent) else place
        if self.remove:
            if not is_series(series):
                raise InputError(f"{self.version} is no series and no version. Name one.")
            unpin(series)
            show({"series": str(series), "pinned": None}, lambda _: f"{series} stands for its newest version")
            return
        artifact = open_artifact(place)
        pin_version(artifact)
        series = artifact.path.parent
        show({"series": str(series), "pinned": str(artifact.path)}, lambda value: value["pinned"])
