"""`realmctl show`: describe one artifact or file, and what it was made from."""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts import catalogue
from realmctl.artifacts.catalogue_text import shown_file_text, shown_text
from realmctl.pipeline import InWorkspace, argument
from realmctl.pipeline.command import Show as ShowResult


class Show(InWorkspace):
    """Print the manifest of an artifact, and the artifacts and files that it was made from.

    For a file, print its format, size and artifact.
    """

    artifact: Path = argument("A version, a series, the name of a series in the workspace, or a file.", completes=True)

    def run(self, show: ShowResult) -> None:
        if self.artifact.is_file():
            file = catalogue.show_file(self.artifact)
            show(file.json(), lambda _: shown_file_text(file))
        else:
            shown = catalogue.show(catalogue.in_workspace(self.artifact, self.workspace), self.workspace)
            show(shown.json(), lambda _: shown_text(shown))
