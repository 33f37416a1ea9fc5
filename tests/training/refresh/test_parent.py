"""A child that asked for it ends with its parent, whatever state either is in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.processes import is_alive, linux
from tests.fixtures.waiting import wait_until

CHILD = """
import os, sys, time
from realmctl.training.refresh.refresher import die_with_parent
die_with_parent(int(sys.argv[1]))
print(os.getpid(), flush=True)
time.sleep(60)
"""
PARENT = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}, str(os.getpid())])
time.sleep(60)
"""
ROOT = Path(__file__).parents[2]


@linux
@pytest.mark.parametrize("stopped", [False, True])
def test_a_child_dies_with_its_killed_parent_even_when_it_is_stopped(stopped):
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        child = int(parent.stdout.readline())
        if stopped:
            os.kill(child, signal.SIGSTOP)
        parent.kill()
        wait_until(lambda: not is_alive(child), 30)  # by itself it would take a minute


def test_a_child_whose_parent_is_gone_already_exits_at_once():
    done = subprocess.run([sys.executable, "-c", CHILD, "1"], capture_output=True, text=True, cwd=ROOT, timeout=50)
    assert (done.returncode, done.stdout) == (0, "")
