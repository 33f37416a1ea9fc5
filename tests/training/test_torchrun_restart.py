"""torchrun starts the processes again after one of them was killed. They go on from the last checkpoint."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from realmctl.artifacts import Artifact, open_artifact
from tests.fixtures.chain import Chain, metrics_of
from tests.fixtures.together import PATIENCE_SECONDS
from tests.fixtures.waiting import wait_until

pytestmark = pytest.mark.timeout(3600)

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "steps": 40,
    "batch-size": 4,
    "lr": 1e-3,
    "warmup": 5,
    "candidates": 4,
    "refresh": "inline",
    "refresh-every": 8,
    "checkpoint-every": 5,
    "seed": 1,
}


def start(chain: Chain, out: Path, restarts: int = 0, **others: object) -> subprocess.Popen[str]:
    inputs = {name: getattr(chain, name).path for name in ("blocks", "spans", "retriever", "index", "encoder")}
    flags = [
        str(part)
        for name, value in {**inputs, **SETTINGS, **others, "out": out}.items()
        for part in (f"--{name}", value)
    ]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "--max-restarts", str(restarts), "-m", "realmctl", "pretrain", *flags]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def process_of(launcher: int, rank: int) -> int:
    """The process with this rank."""
    for child in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise AssertionError(f"no process of rank {rank}")


def those_that_mention(text: str) -> list[str]:
    """The command lines of running processes that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_text().replace("\0", " "))
        except OSError:
            continue
    return [line for line in found if text in line]


@pytest.fixture(scope="module")
def undisturbed(chain, tmp_path_factory) -> Artifact:
    out = tmp_path_factory.mktemp("undisturbed")
    run = start(chain, out)
    assert run.wait(PATIENCE_SECONDS) == 0, run.communicate()[1]
    return open_artifact(out)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_changes_nothing(chain, undisturbed, tmp_path, rank):
    run = start(chain, tmp_path / "model", restarts=1)
    checkpoints = "model/v1.partial/**/step-*1[05]/state.json"
    wait_until(lambda: list(tmp_path.glob(checkpoints)) or run.poll() is not None, PATIENCE_SECONDS)
    assert run.poll() is None
    os.kill(process_of(run.pid, rank), signal.SIGKILL)
    _, printed = run.communicate(timeout=PATIENCE_SECONDS)
    assert run.returncode == 0, printed
    assert "continuing after step" in printed
    made = open_artifact(tmp_path / "model")
    assert metrics_of(made) == metrics_of(undisturbed)
    for part in ("retriever", "reader"):
        files = [file.relative_to(undisturbed.path) for file in (undisturbed.path / part).rglob("*.safetensors")]
        assert files
        for file in files:
            weights, expected = load_file(made.path / file), load_file(undisturbed.path / file)
            torch.testing.assert_close(weights, expected, rtol=0, atol=0)
    assert those_that_mention(str(tmp_path)) == []


@pytest.mark.slow
def test_a_mistake_leaves_no_process_and_no_file(chain, tmp_path):
    run = start(chain, tmp_path / "model", **{"batch-size": 5})
    _, printed = run.communicate(timeout=PATIENCE_SECONDS)
    assert run.returncode != 0 and "5 examples cannot be divided among 2 processes" in printed
    assert re.search("error: process [01] of 2: ", printed), "torchrun may end the other one before it says so"
    assert "exitcode  : 2" in printed
    assert those_that_mention(str(tmp_path)) == [] and not list(tmp_path.glob("model/*"))
