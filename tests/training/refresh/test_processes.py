"""The real command with a real refresher that is stopped (SIGSTOP): neither delays the other's end, nor outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from realmctl.training.refresh.refresh_folder import RefreshFolder, read_heartbeat
from tests.execution.test_parent import is_alive, linux

ROOT = Path(__file__).parents[3]


def start(chain, out):
    """A trainer that would run for long, and the process id of its refresher, which has sent a heartbeat."""
    options = "--steps 100000 --batch-size 2 --candidates 3 --refresh-every 100000 --checkpoint-every 100000 --refresh-device cpu"
    command = [
        sys.executable,
        "-m",
        "realmctl",
        "pretrain",
        "-w",
        str(chain.folder),
        "--out",
        str(out),
        *options.split(),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    before = read_heartbeat(RefreshFolder(out / "v1.partial/live")).get("pid")
    trainer = subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while (beat := read_heartbeat(RefreshFolder(out / "v1.partial/live"))).get("pid") == before:
        assert trainer.poll() is None, trainer.stderr.read()
        assert time.monotonic() < end, "the refresher never sent a heartbeat"
        time.sleep(0.05)
    return trainer, int(beat["pid"])


@linux
@pytest.mark.slow
def test_a_stopped_refresher_neither_delays_nor_outlives_its_trainer(chain, tmp_path):
    trainer, refresher = start(chain, tmp_path / "model")
    os.kill(refresher, signal.SIGSTOP)
    asked = time.monotonic()
    trainer.send_signal(signal.SIGUSR1)
    said = trainer.communicate(timeout=60)[1]
    assert trainer.returncode == 75 and "stopped by SIGUSR1, with a checkpoint at step" in said
    assert time.monotonic() - asked < 10  # 2 s of patience; it was 20
    assert not is_alive(refresher)

    trainer, refresher = start(chain, tmp_path / "model")
    os.kill(refresher, signal.SIGSTOP)
    trainer.kill()
    said = trainer.communicate()[1]
    assert "continuing after step" in said
    end = time.monotonic() + 5
    while is_alive(refresher):
        assert time.monotonic() < end, "the refresher outlived its killed trainer"
        time.sleep(0.01)
