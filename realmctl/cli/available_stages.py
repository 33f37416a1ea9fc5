"""The stages that the command line offers: those of realmctl, and those of other packages (`realmctl.stages`).

A plug-in that cannot be used is reported when its command is called. The other commands still work.
"""

from __future__ import annotations

import pkgutil
from types import ModuleType

from realmctl import registry
from realmctl.cli import commands
from realmctl.errors import ConfigError, RealmctlError, ResourceError
from realmctl.pipeline import Stage
from realmctl.pipeline.discovery import GROUP, discover, own_stages

COMMANDS = "realmctl.commands"
"""The group in which rooms offer commands that are not stages."""


def available_stages() -> dict[str, type[Stage]]:
    """The stages by command: realmctl's in the order of a pipeline, then those of plug-ins by name.

    Raises ConfigError if `stages` is another project's package, before any of its code runs.
    """
    return _all_stages()[0]


def unusable_stages() -> dict[str, RealmctlError]:
    """The error for each command whose plug-in cannot be imported, or that several packages offer."""
    return _all_stages()[1]


def _all_stages() -> tuple[dict[str, type[Stage]], dict[str, RealmctlError]]:
    ours, added, unusable = own_stages(), dict[str, type[Stage]](), dict[str, RealmctlError]()
    owners = {command: ["realmctl"] for command in registry.joined(COMMANDS, dict.fromkeys(ours, ""), other_commands())}
    for point in registry.points(GROUP):
        try:
            offered = _stages_of(point.name, registry.owner_of(point), registry.load(point))
        except RealmctlError as error:
            unusable.setdefault(point.name, error)
            continue
        for command, stage in offered.items():
            owners[command] = [*owners.get(command, []), registry.owner_of(point)]
            added[command] = stage
    taken = {command: registry.clash("stage", command, names) for command, names in owners.items() if len(names) > 1}
    every = {**ours, **dict(sorted(added.items()))}
    usable = {command: stage for command, stage in every.items() if command not in taken}
    broken = {command: error for command, error in unusable.items() if command not in owners}
    return usable, {**broken, **taken}


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
    """{command: "module:Class"} of the files in `realmctl.cli.commands` and of the rooms. `index_docs.py` has the class `IndexDocs`."""
    core = [info.name for info in pkgutil.iter_modules(commands.__path__)]
    ours = {name.replace("_", "-"): f"{commands.__name__}.{name}:{name.title().replace('_', '')}" for name in core}
    return registry.joined(COMMANDS, ours, registry.offered(COMMANDS))
