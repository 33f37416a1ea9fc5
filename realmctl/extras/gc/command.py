"""`realmctl gc`: delete versions that nothing needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from realmctl.amounts import size_text
from realmctl.extras.gc.collecting import Collected, collect
from realmctl.pipeline import InWorkspace, Show, argument, setting


class Gc(InWorkspace):
    """List or delete the versions that nothing needs.

    Kept are the newest and the pinned version of each series, everything that they and unfinished runs were made from, versions that a process
    has open, and damaged ones. Not kept are unfinished runs that gave way to others, which lie in the quarantine folders of series.

    Kept is also what artifacts nearby were made from: those in the workspace that a named series lies in, series directly beside a named workspace, and
    those in --workspace. What only artifacts elsewhere need is deleted, so name their workspaces too.
    """

    folders: tuple[Path, ...] = argument("Workspaces or series to delete in. Default: the workspace.", default=())
    keep: int = setting("Newest versions of each series that are kept in any case.", default=1, at_least=1)
    delete: bool = setting("Delete. Without it, the command only lists.", default=False)

    def run(self, show: Show) -> None:
        found = collect(list(self.folders) or [self.workspace], self.keep, self.delete, self.workspace)
        show(found.json(), lambda _: _text(found))


def _text(found: Collected) -> str:
    lines = [f"{version.path}  {size_text(version.size)}" for version in (*found.gone, *found.aside)]
    needed = [f"{version.path} is kept: {_few(users)} needs it" for version, users in found.needed_by.items() if users]
    kept = ", ".join(f"{count} {why}" for why, count in Counter(found.kept.values()).items()) or "none"
    done = "deleted" if found.deleted else "may be deleted (add --delete)"
    count = f"{len(found.gone)} version{'' if len(found.gone) == 1 else 's'}"
    count += (
        f" and {len(found.aside)} unfinished run{'' if len(found.aside) == 1 else 's'} set aside" if found.aside else ""
    )
    summary = f"{count}, {size_text(found.bytes)}: {done}. Kept: {kept}."
    elsewhere = "What artifacts elsewhere need is not known: name their workspaces too."
    return "\n".join([*lines, *needed, summary, *([elsewhere] if found.gone else [])])


def _few(paths: Sequence[Path]) -> str:
    """The first of these paths, and how many more there are."""
    return f"{paths[0]} (and {len(paths) - 1} more)" if len(paths) > 1 else f"{paths[0]}"
