"""The stages that the command line offers: those of realmctl, and those of other packages (`realmctl.stages`).

A plug-in that cannot be used is reported when its command is called. The other commands still work.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from realmctl import registry
from realmctl.cli import commands
from realmctl.errors import ConfigError, RealmctlError, ResourceError
from realmctl.pipeline import Stage
from realmctl.pipeline.discovery import GROUP, classes_by_name, discover, own_names, own_stages

COMMANDS = "realmctl.commands"
"""The group in which rooms offer commands that are not stages."""


def available_stages() -> dict[str, type[Stage]]:
    """The stages by command: realmctl's in the order of a pipeline, then those of plug-ins by name.

    Raises ConfigError if `stages` is another project's package, before any of its code runs.
    """
    added, unusable = stages_of_plugins()
    return {**{name: stage for name, stage in own_stages().items() if name not in unusable}, **added}


Offer = str | type[Stage]
"""A stage as "module:Class", which is not imported yet, or the stage of a plug-in."""


def stages_by_name() -> dict[str, Offer]:
    """The same, without importing realmctl's: a command needs its own stage alone."""
    added, unusable = stages_of_plugins()
    return {**{name: where for name, where in own_names().items() if name not in unusable}, **added}


def stage_of(offer: Offer) -> type[Stage]:
    """The stage that is offered."""
    return registry.class_at(offer, Stage) if isinstance(offer, str) else offer


def stages_of_plugins() -> tuple[dict[str, type[Stage]], dict[str, RealmctlError]]:
    """The stages of other packages by command, and the error for each command whose plug-in cannot be imported, or that several packages offer."""
    added, unusable = dict[str, type[Stage]](), dict[str, RealmctlError]()
    owners = {command: ["realmctl"] for command in registry.joined(COMMANDS, own_names(), other_commands())}
    for point in registry.points(GROUP):
        try:
            offered = _stages_of(point.name, registry.owner_of(point), registry.load(point))
            for stage in offered.values():
                registry.require_fit(stage, registry.name_of(stage), registry.class_misfit(stage, Stage), point)
        except RealmctlError as error:
            unusable.setdefault(point.name, error)
            continue
        for command, stage in offered.items():
            owners[command] = [*owners.get(command, []), registry.owner_of(point)]
            added[command] = stage
    taken = {command: registry.clash("stage", command, names) for command, names in owners.items() if len(names) > 1}
    broken = {command: error for command, error in unusable.items() if command not in owners}
    return {name: stage for name, stage in sorted(added.items()) if name not in taken}, {**broken, **taken}


def _stages_of(name: str, owner: str, found: object) -> dict[str, type[Stage]]:
    """{command: stage} of what an entry point names: a stage, or a package of stage files."""
    if isinstance(found, type) and issubclass(found, Stage):
        return {found.command(): found}
    if not (isinstance(found, ModuleType) and hasattr(found, "__path__")):
        raise ResourceError(
            f"the plug-in {name!r} of the package {owner} is neither a stage nor a package of stage files. Correct its entry "
            f"point in the group {GROUP}, or uninstall {owner}."
        )
    try:
        return discover(found)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        raise registry.not_imported(name, owner, found.__name__, error) from error


def other_commands() -> dict[str, str]:
    """{command: "module:Class"} of the files in `realmctl.cli.commands` and of the rooms."""
    ours = classes_by_name(commands.__name__, Path(commands.__path__[0]))
    return registry.joined(COMMANDS, ours, registry.offered(COMMANDS))
