"""One of several processes that make artifacts together.

Usage: python -m tests.training.together_process JOBS, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set. JOBS is a JSON
file: a list of [stage, fields, out, rank that ends at the step with index 3 or null, "kill" or "error"]. Prints for each job a JSON line:
its exit code and its error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

from realmctl.errors import InputError, RealmctlError
from realmctl.execution import processes
from realmctl.pipeline.discovery import own_stages
from realmctl.training import data_parallel, loop


def main(jobs: Path) -> int:
    torch.set_num_threads(1)
    try:
        with data_parallel.process_group(torch.device("cpu")):
            for job in json.loads(jobs.read_text()):
                print(json.dumps(make(*job)), flush=True)
    except RealmctlError as error:
        print(json.dumps([error.exit_code, str(error)]))
        return error.exit_code
    return 0


def make(stage: str, fields: dict[str, Any], out: str, ends: int | None, how: str) -> tuple[int, str]:
    """Make an artifact. Returns the exit code and the error."""
    if ends == processes.rank():
        end_at_the_fourth_step(how)
    try:
        own_stages()[stage](**fields).make(out)
    except RealmctlError as error:
        if ends is not None:
            raise
        return error.exit_code, str(error)
    return 0, ""


def end_at_the_fourth_step(how: str) -> None:
    """Have this process kill itself, or fail."""
    plain = loop._Run._step

    def step(run: Any, number: int) -> dict[str, float]:
        if number == 3 and how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 3:
            raise InputError("The disk of this host is gone.")
        return plain(run, number)

    loop._Run._step = step  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
