"""The real command with a real refresher that is stopped (SIGSTOP): neither delays the other's end, nor outlives it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact
from realmctl.training.refresh.protocol import RefreshFolder
from tests.faults.counting import count
from tests.fixtures.processes import is_alive, linux
from tests.fixtures.waiting import wait_until

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
    before = RefreshFolder(out / "v1.partial/live").last_beat().get("pid")
    trainer = subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    live = RefreshFolder(out / "v1.partial/live")
    wait_until(lambda: live.last_beat().get("pid") != before or trainer.poll() is not None)
    assert trainer.poll() is None, trainer.stderr.read()
    return trainer, int(live.last_beat()["pid"])


@linux
@pytest.mark.slow
def test_a_stopped_refresher_neither_delays_nor_outlives_its_trainer(chain, tmp_path):
    trainer, refresher = start(chain, tmp_path / "model")
    os.kill(refresher, signal.SIGSTOP)
    trainer.send_signal(signal.SIGUSR1)
    said = trainer.communicate(timeout=300)[1]
    assert trainer.returncode == 75 and "stopped by SIGUSR1, with a checkpoint at step" in said
    assert not is_alive(refresher)

    trainer, refresher = start(chain, tmp_path / "model")
    os.kill(refresher, signal.SIGSTOP)
    trainer.kill()
    said = trainer.communicate()[1]
    assert "continuing after step" in said
    wait_until(lambda: not is_alive(refresher))


LOCKSTEP = "--refresh lockstep --steps 24 --batch-size 2 --candidates 3 --refresh-every 6 --checkpoint-every 4 --refresh-device cpu"


def lockstep(chain, out):
    command = [
        sys.executable,
        "-m",
        "realmctl",
        "pretrain",
        "-w",
        str(chain.folder),
        "--out",
        str(out),
        *LOCKSTEP.split(),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


@linux
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_in_lockstep_kills_of_real_processes_change_no_bit(chain, tmp_path, seed):
    """SIGKILL at random moments: the refresher, the trainer, or both."""
    began = time.monotonic()
    undisturbed = lockstep(chain, tmp_path / "undisturbed")
    assert undisturbed.wait(300) == 0, undisturbed.stderr.read()
    took = time.monotonic() - began  # a kill at a fixed time would come too late on a fast machine
    expected, draw, kills = open_artifact(tmp_path / "undisturbed").content, random.Random(seed), 0
    out = tmp_path / "model"
    while True:
        trainer = lockstep(chain, out)
        try:
            trainer.wait(draw.uniform(0.3, 0.8) * took if kills < 6 else 300)
        except subprocess.TimeoutExpired:
            refresher, whom = RefreshFolder(out / "v1.partial/live").last_beat().get("pid"), draw.randrange(3)
            lives = refresher is not None and is_alive(refresher)
            if lives and whom != 0:
                os.kill(refresher, signal.SIGKILL)
            if lives and whom == 1:
                trainer.wait(300)  # it starts the refresher again
            else:
                trainer.kill()
            kills += 1
        said = trainer.communicate()[1]
        if trainer.returncode == 0 and kills:
            break
        if trainer.returncode == 0:  # the machine is less busy than when it was timed
            took /= 2
            shutil.rmtree(out)
            continue
        assert trainer.returncode == -signal.SIGKILL, said
        wait_until(lambda refresher=refresher: not refresher or not is_alive(refresher))
    assert open_artifact(out).content == expected
    count("SIGKILL of trainer, refresher or both, in lockstep", kills, seeds="0 to 2")
