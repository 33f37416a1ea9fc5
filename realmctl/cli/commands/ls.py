"""`realmctl ls`: list artifacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from realmctl.artifacts import catalogue, catalogue_text
from realmctl.artifacts.place import is_series
from realmctl.cli import available_stages
from realmctl.pipeline import InWorkspace, Show, argument
from realmctl.pipeline.comparing import Known, differences, known_in, shown
from realmctl.pipeline.headline import headline_text


class Ls(InWorkspace):
    """List the versions of all series: kind, size, time and the most important number of each.

    What differs between the versions of a series is named behind the number; for one series it stands in columns. A star marks
    a pinned version.
    """

    folder: Path | None = argument(
        "Folder of series, a series, or the name of a series in the workspace. Default: the workspace.", default=None
    )

    def run(self, show: Show) -> None:
        listed_in = catalogue.in_workspace(self.folder, self.workspace) if self.folder else self.workspace
        versions = catalogue.listing(listed_in)
        stages = available_stages.stages_by_name()
        headlines = {version.path: _headline(version, stages) for version in versions}
        several = len({version.path.parent for version in versions}) < len(versions)
        varying = (
            _varying(versions, known_in([listed_in.parent if is_series(listed_in) else listed_in, self.workspace]))
            if several
            else {}
        )
        listed = [
            {**version.json(), "headline": headlines[version.path], "differs": varying.get(version.path, {})}
            for version in versions
        ]
        value = {"folder": str(listed_in), "artifacts": listed}
        told = {path: {name: shown(value) for name, value in values.items()} for path, values in varying.items()}
        show(value, lambda _: catalogue_text.listing_text(listed_in, versions, headlines, told))


def _varying(versions: Sequence[catalogue.Version], known: Known) -> dict[Path, dict[str, Any]]:
    """{version: what differs from the other versions of its series that the same stage made}."""
    groups: dict[tuple[Path, str], list[catalogue.Version]] = {}
    for version in versions:
        if version.manifest:
            groups.setdefault((version.path.parent, version.manifest.stage), []).append(version)
    found = {}
    for group in groups.values():
        columns = differences([version.manifest for version in group if version.manifest], known)
        for place, version in enumerate(group):
            found[version.path] = {name: values[place] for name, values in columns.items()}
    return found


def _headline(version: catalogue.Version, stages: Mapping[str, available_stages.Offer]) -> str:
    """Return the headline of the stage that made an artifact; all metrics if no stage made it, as after `import`."""
    if version.manifest is None:
        return ""
    offer, metrics = stages.get(version.manifest.stage), version.manifest.metrics
    return available_stages.stage_of(offer).headline_text(metrics) if offer else headline_text(("*",), metrics)
