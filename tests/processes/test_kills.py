"""The process of a rank is found and killed, once there is a checkpoint, and never after the end."""

from __future__ import annotations

import sys

import pytest

from tests.processes.commands import RunningCommand
from tests.processes.kills import kill_rank

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
LAUNCHER = """
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env={{**os.environ, "RANK": str(n)}}) for n in range(2)]
folder = {folder!r} + "/v1.partial/checkpoints/step-00000008"
os.makedirs(folder)
open(folder + "/state.json", "w").close()
print(ranks[1].wait(), file=sys.stderr)
ranks[0].kill()
"""


def start(tmp_path, text: str) -> RunningCommand:
    return RunningCommand([sys.executable, "-c", text.format(folder=str(tmp_path / "model"))], tmp_path / "log")


def test_the_process_with_the_rank_is_killed_after_its_checkpoint(tmp_path):
    with start(tmp_path, LAUNCHER) as run:
        assert kill_rank(run, tmp_path / "model", rank=1, after=4) == "process 1 after step 8"
        assert run.failure() == "" and run.messages == "-9\n"


def test_a_command_that_ends_first_is_not_killed(tmp_path):
    with start(tmp_path, "pass") as run:
        assert kill_rank(run, tmp_path / "model", rank=1, after=4) == ""


def test_a_failure_is_its_error_line(tmp_path):
    with start(tmp_path, "import sys; print('note', file=sys.stderr); sys.exit('error: the disk is full')") as run:
        assert run.failure() == "error: the disk is full"


def test_leaving_early_ends_the_command(tmp_path):
    with start(tmp_path, "import time; time.sleep(60)") as run:
        process = run.process
    assert process.returncode is not None and process.returncode < 0
