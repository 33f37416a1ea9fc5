"""Two GPUs: a refresher beside training, and two processes that exchange through nccl."""

from __future__ import annotations

import os
import subprocess

import pytest

from realmctl.artifacts import open_artifact
from realmctl.pipeline.discovery import own_stages
from tests.fixtures.chain import metrics_of, pretrain
from tests.fixtures.objectives import jobs_of, require_equal
from tests.fixtures.together import PATIENCE_SECONDS, ROOT, make_alone
from tests.processes.commands import torchrun, words_of

LOCKSTEP = {"steps": 9, "refresh": "lockstep", "refresh_every": 2, "checkpoint_every": 3, "device": "cuda:0"}


def refreshed(chain, out, device):
    return pretrain(chain, **LOCKSTEP, refresh_device=device).make(out)


def test_a_refresher_on_the_same_gpu(chain, tmp_path):
    """Lockstep: the snapshot of step 2 k goes into use at step 2 k + 2."""
    ages = [line["index_age_steps"] for line in metrics_of(refreshed(chain, tmp_path / "model", "cuda:0"))]
    assert ages == [0, 1, 2, 3, 2, 3, 2, 3, 2]


def test_a_refresher_on_two_gpus_changes_no_loss(chain, tmp_path):
    made = [refreshed(chain, tmp_path / device.replace(":", "-"), device) for device in ("cuda:0", "cuda:1")]
    one, two = ([line["loss"] for line in metrics_of(each)] for each in made)
    assert two == pytest.approx(one, rel=1e-5)


@pytest.mark.parametrize("name", ["mlm-micro", "ict-cache", "cocondenser", "pretrain", "pretrain-shards", "finetune"])
def test_processes_on_two_gpus_learn_what_one_learns(chain, tmp_path, name):
    job = jobs_of(chain, tmp_path)[name]
    alone = make_alone(job, tmp_path / "one")
    words = [*torchrun(2), *words_of(own_stages()[job.stage](**job.fields), tmp_path / "two")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    require_equal(open_artifact(tmp_path / "two"), alone)
