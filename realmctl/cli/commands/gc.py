"""`realmctl gc`: delete versions that nothing needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from realmctl.artifacts.catalogue_text import size_text
from realmctl.artifacts.gc.collect import collect
from realmctl.cli.invoke import print_result
from realmctl.cli.options import Json, Workspace, path


def gc(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=path,
            help="Workspaces or series. Name all that belong together: what only another workspace needs is not kept. "
            "Default: the workspace.",
        ),
    ] = None,
    keep: Annotated[int, typer.Option(help="Newest versions of each series that are kept in any case.")] = 1,
    delete: Annotated[bool, typer.Option("--delete", help="Delete. Without it, the command only lists.")] = False,
    workspace: Workspace = Path("artifacts"),
    json: Json = False,
) -> None:
    """List or delete the versions that nothing needs.

    Kept are the newest versions of each series, everything that they and unfinished runs were made from, versions that a process
    has open, and damaged ones.
    """
    print_result(collect(folders or [workspace], keep, delete), json, _text)


def _text(value: Mapping[str, Any]) -> str:
    lines = [f"{version['path']}  {size_text(version['bytes'])}" for version in value["versions"]]
    why = Counter(version["why"] for version in value["kept"])
    kept = ", ".join(f"{count} {reason}" for reason, count in why.items()) or "none"
    done = "deleted" if value["deleted"] else "may be deleted (add --delete)"
    total = f"{len(lines)} versions, {size_text(value['bytes'])}: {done}. Kept: {kept}."
    return "\n".join([*lines, total])
