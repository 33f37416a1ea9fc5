"""Who is killed, and when. Processes are found in Linux's /proc."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from realmctl.training.refresh.protocol import RefreshFolder
from tests.processes.commands import RunningCommand


def kill_rank(run: RunningCommand, series: Path, rank: int, after: int) -> str:
    """Kill the process with this rank once there is a checkpoint of `after` steps or more.

    Returns:
        Who was killed and when. Empty if the command ended before.
    """
    step = run.wait_for(lambda: _checkpoint(series, after))
    if step is None or (process := _process_of(run.process.pid, rank)) is None:
        return ""
    os.kill(process, signal.SIGKILL)
    return f"process {rank} after step {step}"


def kill_refresher(run: RunningCommand, series: Path) -> str:
    """Kill the refresher once it works on its first snapshot. Returns who was killed, or an empty text."""
    live = RefreshFolder(series / "v1.partial" / "live")

    def at_work() -> int | None:
        return live.last_beat().get("pid") if live.snapshots.steps() and not live.indexes.steps() else None

    process = run.wait_for(at_work)
    if process is None:
        return ""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return ""
    return "the refresher at its first index"


def worker_at_work(nodes: list[tuple[Any, int]]) -> object:
    """Return the node whose Ray worker computes a unit just now; None if none does.

    Args:
        nodes: Nodes with the process ids of their raylets, which start the workers.
    """
    for node, raylet in nodes:
        if any(_read(child, "cmdline").startswith(b"ray::_Worker.call") for child in _children(raylet)):
            return node
    return None


def _checkpoint(series: Path, after: int) -> int | None:
    """The newest checkpoint's step, if it is large enough."""
    steps = [int(state.parent.name.partition("-")[2]) for state in series.glob("v1.partial/**/step-*[0-9]/state.json")]
    return max(steps) if steps and max(steps) >= after else None


def _process_of(launcher: int, rank: int) -> int | None:
    found = (child for child in _children(launcher) if f"RANK={rank}".encode() in _read(child, "environ").split(b"\0"))
    return next(found, None)


def _children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children")
    try:
        return [int(child) for child in text.read_text().split()]
    except OSError:
        return []


def _read(process: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{process}/{what}").read_bytes()
    except OSError:
        return b""
