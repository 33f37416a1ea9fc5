"""The commands in the order in which people use them: the groups of `realmctl --help` and of the reference's pages.

The commands of rooms stand in the group of their package, behind those of the core, unless the room names another group (`GROUP` below).
"""

from __future__ import annotations

from collections.abc import Mapping

from realmctl import registry
from realmctl.cli.available_stages import COMMANDS
from realmctl.pipeline.discovery import GROUP as STAGES

GROUPS: Mapping[str, tuple[str, ...]] = {
    "First look": ("index-docs", "search", "adapt"),
    "Documents and spans": ("chunk", "revise", "tag"),
    "Encoders and retrievers": ("mlm-init", "ict-init"),
    "Index and search": ("embed", "build-index", "eval-cloze"),
    "Pre-training": ("pretrain", "refresh", "fill-mask"),
    "Questions and answers": ("finetune", "eval-em", "ask"),
    "Runs and artifacts": ("run", "ls", "show", "pin", "verify"),
}
OTHERS = "More commands"
ROOMS = {"realmctl.extras": "Extras", "realmctl.lab": "Lab"}
"""{package of rooms: group of their commands}."""
GROUP = "realmctl.groups"
"""Under this name a room says in which group its commands stand: {command: group}."""


def group_of(command: str) -> str:
    """Return the group of a command; OTHERS for one that no group names, such as a new stage."""
    if command in (placed := registry.offered(GROUP)):
        return placed[command]
    of_core = next((group for group, names in GROUPS.items() if command in names), "")
    return of_core or ROOMS.get(_room_of(command).rpartition(".")[0], OTHERS)


def _room_of(command: str) -> str:
    """Return the room that offers a command or stage; empty for those of the core."""
    offers = ((room, {**offer.get(COMMANDS, {}), **offer.get(STAGES, {})}) for room, offer in registry.rooms().items())
    return next((room for room, names in offers if command in names), "")


def place_of(command: str) -> tuple[int, int, str]:
    """Return a key that sorts commands in order of use; those of rooms come last in a group, by room."""
    group = group_of(command)
    groups = [*GROUPS, *ROOMS.values(), OTHERS]
    known = GROUPS.get(group, ())
    return groups.index(group), known.index(command) if command in known else len(known), _room_of(command)
