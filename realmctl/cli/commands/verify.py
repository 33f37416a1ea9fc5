"""`realmctl verify`: check every hash of artifacts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from realmctl.artifacts import catalogue
from realmctl.artifacts.catalogue_text import verified_text
from realmctl.pipeline import InWorkspace, Show, argument


class Verify(InWorkspace):
    """Recompute every hash of artifacts and of their parts. Of a workspace, every version is checked."""

    artifacts: tuple[Path, ...] = argument(
        "Versions, series for their newest version, or folders of series. Default: the workspace.",
        default=(),
        completes=True,
    )

    def run(self, show: Show) -> None:
        named = [catalogue.in_workspace(artifact, self.workspace) for artifact in self.artifacts or [self.workspace]]
        places = [version for place in named for version in catalogue.versions_at(place)]
        verified = [catalogue.verify_path(place) for place in places]
        show({"verified": [asdict(one) for one in verified]}, lambda _: verified_text(verified))
