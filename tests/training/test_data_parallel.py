"""Two processes under torchrun against one: the same loss, the same weights, one artifact."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from realmctl.artifacts import Artifact, open_artifact
from realmctl.errors import ConfigError
from realmctl.models.retriever import Retriever
from realmctl.pipeline.discovery import own_stages
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit
from tests.fixtures.chain import Stopped, metrics_of, stop_at
from tests.fixtures.together import PATIENCE_SECONDS
from tests.training import gather_process

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {  # at 1e-2 a steep place comes, where the order of sums alone moves the gradient's norm by 3e-4
    "steps": 6,
    "batch_size": 8,
    "lr": 1e-3,
    "warmup": 2,
    "projection": 16,
    "query_length": 24,
    "precision": "fp32",
}


@pytest.fixture(scope="module")
def encoder(chain) -> Artifact:
    """Without dropout, which two processes draw otherwise than one."""
    settings = {"bert": "scratch:L1-H16", "steps": 1, "batch_size": 2, "length": 24, "dropout": 0.0}
    return MlmInit(blocks=chain.blocks, **settings).make(chain.folder / "encoder-without-dropout")


@pytest.fixture(scope="module")
def alone(chain, encoder) -> Artifact:
    return IctInit(blocks=chain.blocks, encoder=encoder, **SETTINGS).make(chain.folder / "alone")


def torchrun(*arguments: object, processes: int = 2) -> subprocess.CompletedProcess[str]:
    """`torchrun -m realmctl ...` on this machine."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    command = [*start, "-m", "realmctl", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=PATIENCE_SECONDS)


def ict_init(chain, encoder, out: Path, **others: object) -> subprocess.CompletedProcess[str]:
    settings = {"blocks": chain.blocks.path, "encoder": encoder.path, "out": out, **SETTINGS, **others}
    return torchrun(
        "ict-init", *(part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", value))
    )


def require_equal(one: Artifact, other: Artifact) -> None:
    """Losses of every step, and what was learnt, but for the order of sums."""
    for mine, theirs in zip(metrics_of(one), metrics_of(other), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-5)
    weights, expected = (Retriever.load(made.path).state_dict() for made in (one, other))
    for name, tensor in expected.items():
        torch.testing.assert_close(weights[name], tensor, atol=2e-4, rtol=1e-3, msg=name)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_gathered_loss_and_its_gradients_are_those_of_the_whole_batch(count, tmp_path):
    whole = gather_process.step()
    assert whole["anyone"] == 1 and 0 <= whole["accuracy"] <= 1
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(count)}
    command = [sys.executable, "-m", "tests.training.gather_process"]
    started = [
        subprocess.Popen(
            [*command, str(tmp_path / f"{rank}")], cwd=ROOT, env={**os.environ, **address, "RANK": str(rank)}
        )
        for rank in range(count)
    ]
    assert [process.wait(120) for process in started] == [0] * count
    for rank in range(count):
        found = load_file(tmp_path / f"{rank}")
        assert found.keys() == whole.keys()
        for name, expected in whole.items():
            torch.testing.assert_close(found[name], expected, msg=name)


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(chain, encoder, alone, tmp_path):
    result = ict_init(chain, encoder, tmp_path / "two")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [str(tmp_path / "two" / "v1")]
    made = open_artifact(tmp_path / "two")
    require_equal(made, alone)
    assert made.manifest.recipe == alone.manifest.recipe
    assert metrics_of(made)[0]["loss"] > 1 and [path.name for path in (tmp_path / "two").glob("v*")] == ["v1"]


@pytest.mark.slow
def test_two_processes_go_on_from_a_checkpoint_of_one(chain, encoder, alone, tmp_path, monkeypatch):
    stage = IctInit(blocks=chain.blocks, encoder=encoder, checkpoint_every=2, **SETTINGS)
    stop_at(monkeypatch, 4)
    with pytest.raises(Stopped):
        stage.make(tmp_path / "r")
    result = ict_init(chain, encoder, tmp_path / "r")
    assert result.returncode == 0, result.stderr
    assert "continuing after step 4" in result.stderr
    require_equal(open_artifact(tmp_path / "r"), alone)


@pytest.mark.house
@pytest.mark.slow
@pytest.mark.parametrize("chunk", [0, 3])
def test_two_processes_learn_cocondenser_as_one_does(chain, encoder, tmp_path, chunk):
    settings = {"steps": 4, "batch_size": 4, "lr": 1e-3, "warmup": 2, "length": 24, "skip_from": 0, "precision": "fp32"}
    stage = own_stages()["condenser-init"](
        blocks=chain.blocks, encoder=encoder, contrastive=True, micro_batch=chunk, **settings
    )
    alone = stage.make(tmp_path / "one")
    flags = {"blocks": chain.blocks.path, "encoder": encoder.path, "out": tmp_path / "two", "micro-batch": chunk}
    flags |= {name.replace("_", "-"): value for name, value in settings.items()}
    options = (part for name, value in flags.items() for part in (f"--{name}", value))
    result = torchrun("condenser-init", "--contrastive", *options)
    assert result.returncode == 0, result.stderr
    made = open_artifact(tmp_path / "two")
    assert made.manifest.recipe == alone.manifest.recipe
    for mine, theirs in zip(metrics_of(made), metrics_of(alone), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-5)
    for name in ("model.safetensors", "condenser_head.safetensors"):
        weights, expected = (load_file(one.file(name)) for one in (made, alone))
        torch.testing.assert_close(weights, expected, atol=2e-4, rtol=1e-3)


def test_pairs_that_cannot_be_shared_are_refused_by_name(chain, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match=r"7 .* 2 "):
        IctInit(blocks=chain.blocks, bert="scratch:L1-H16", **{**SETTINGS, "batch_size": 7}).make(tmp_path / "odd")
    assert not list((tmp_path / "odd").glob("v*"))


def test_other_stages_work_in_one_process(chain, tmp_path, realmctl, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    code, out, err = realmctl("tag", "--blocks", chain.blocks.path, "--out", tmp_path / "spans")
    assert code == 2 and out == "" and "tag runs in one process, not in 4" in err
