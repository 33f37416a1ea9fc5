"""Trainer and refresher as processes that are killed, in the lockstep mode and in the background mode.

The processes are forks of the test: the trainer runs the stage, and its refresher runs what `realmctl refresh` runs. Only the
start of an interpreter is missing. Some of the delivered indexes are damaged on their way.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact, open_artifact, series, verify
from realmctl.errors import LockedError
from realmctl.index.protocol import Index
from realmctl.training.refresh import child, index_in_use, refresher
from realmctl.training.refresh.child import TRAINER
from realmctl.training.refresh.protocol import RefreshFolder
from tests.faults.children import ended, forked, killed
from tests.faults.counting import count, share
from tests.fixtures.chain import Chain, metrics_of, pretrain
from tests.fixtures.processes import is_alive, linux
from tests.fixtures.waiting import wait_until

SEED, KILLS = 22, 6
"""KILLS of a round."""
DAMAGED = 0.2
"""Share of the delivered indexes that are damaged before the trainer sees them."""
LOCKSTEP = {"refresh": "lockstep", "steps": 12, "refresh_every": 3, "checkpoint_every": 2}
BACKGROUND = {"refresh": "background", "steps": 30, "refresh_every": 2, "max_index_age": 5, "checkpoint_every": 3}


class ForkedRefresher:
    """A refresher in the place of `subprocess.Popen`, as far as `ChildRefresher` uses it."""

    def __init__(self, command: list[str], stdin: int, stdout: object, stderr: object, env: dict[str, str]) -> None:
        reads, writes = os.pipe()
        os.set_inheritable(writes, False)
        folder = Path(command[command.index("refresh") + 1])

        def act() -> None:
            os.dup2(reads, 0)
            os.close(reads)
            os.close(writes)
            os.environ[TRAINER] = env[TRAINER]
            refresher.serve(folder, "cpu")

        self.stdin = os.fdopen(writes, "wb")
        self.pid = forked(act, folder / "refresher.log")
        self._code: int | None = None
        os.close(reads)

    def poll(self) -> int | None:
        if self._code is None:
            self._code = ended(self.pid, within=0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None and (code := ended(self.pid, within=timeout)) is None:
            raise subprocess.TimeoutExpired("refresh", timeout or 0)
        if self._code is None:
            self._code = code
        return self._code  # type: ignore[return-value]

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def train(chain: Chain, out: Path, settings: dict[str, object], seed: int) -> None:
    """The trainer, in a child process. An index that it uses must be whole."""
    draw, plain, deliver = random.Random(seed), index_in_use.open_index, RefreshFolder.deliver

    def verified(folder: Path, device: str) -> Index:
        verify(open_artifact(folder))  # an error ends the trainer, which no one killed
        return plain(folder, device)

    def damaging(folder: RefreshFolder, private: Path, step: int) -> None:
        if draw.random() < DAMAGED:
            path = private / "vectors.npy"
            data = path.read_bytes()
            path.chmod(0o644)
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 1 << draw.randrange(8)]))
        deliver(folder, private, step)

    index_in_use.open_index, RefreshFolder.deliver = verified, damaging  # type: ignore[method-assign, assignment]
    child.subprocess.Popen = ForkedRefresher  # type: ignore[misc, assignment, attr-defined]
    child.BACK_OFF, refresher.POLL_SECONDS = 0.1, 0.02
    os.environ.pop("REALMCTL_WORKSPACE", None)
    pretrain(chain, refresh_device="cpu", **settings).make(out)


def refresher_of(out: Path) -> int:
    """Process id of the refresher of the unfinished run; 0 when none has sent a heartbeat."""
    return RefreshFolder(out / "v1.partial/live").last_beat().get("pid", 0)


def unlocked(out: Path) -> bool:
    """Whether the series can be locked. A forked refresher without a heartbeat yet has its trainer's lock until it ends."""
    try:
        with series.locked(out):
            return True
    except LockedError:
        return False


def disturbed(chain: Chain, out: Path, settings: dict[str, object], kills: int, seed: int) -> tuple[Artifact, int]:
    """Train to the end. Kill trainer, refresher or both at random moments on the way. Returns (the model, kills that struck)."""
    draw, log, struck, start = random.Random(seed), out.with_name(f"{out.name}.log"), 0, 0
    seconds = 1.0
    while True:
        start, begun = start + 1, time.monotonic()
        trainer = forked(partial(train, chain, out, settings, seed + start), log)
        code, second = ended(trainer, within=draw.uniform(0.1, 1.2) * seconds) if struck < kills else ended(trainer), 0
        if code is None:
            second, whom = refresher_of(out), draw.randrange(3)
            if second and whom and is_alive(second):
                os.kill(second, signal.SIGKILL)
                struck += 1
            if whom == 1:
                code = ended(trainer)  # it starts the refresher again
            elif killed(trainer):
                struck, code = struck + 1, None
        if code is not None:
            assert code == 0, log.read_text()[-3000:]
            return open_artifact(out), struck
        seconds = max(seconds, time.monotonic() - begun)
        wait_until(lambda second=second: not second or not is_alive(second))
        wait_until(lambda: unlocked(out))


@linux
@pytest.mark.timeout(7200)
def test_in_lockstep_no_kill_and_no_damaged_index_changes_a_bit(chain, tmp_path):
    expected = disturbed(chain, tmp_path / "undisturbed", LOCKSTEP, 0, SEED)[0].content
    struck, seed = 0, SEED
    while struck < share(KILLS):
        seed += 100
        model, kills = disturbed(chain, tmp_path / "model", LOCKSTEP, min(6, share(KILLS) - struck), seed)
        assert model.content == expected, f"seed {seed}"
        verify(model)
        shutil.rmtree(tmp_path / "model")
        struck += kills
    count("SIGKILL of trainer, refresher or both, in lockstep (forks)", struck, seeds=f"{SEED + 100} to {seed}")


@pytest.mark.slow
@linux
@pytest.mark.timeout(7200)
def test_in_the_background_mode_no_kill_makes_an_index_too_old(chain, tmp_path):
    struck, seed, most = 0, SEED, BACKGROUND["max_index_age"]
    while struck < share(KILLS):
        seed += 100
        model, kills = disturbed(chain, tmp_path / "model", BACKGROUND, min(6, share(KILLS) - struck), seed)
        ages = [line["index_age_steps"] for line in metrics_of(model)]
        assert len(ages) == BACKGROUND["steps"] and max(ages) <= most, f"seed {seed}: {ages}"
        verify(model)
        shutil.rmtree(tmp_path / "model")
        struck += kills
    count(
        "SIGKILL of trainer, refresher or both, in the background mode (forks)", struck, seeds=f"{SEED + 100} to {seed}"
    )
