"""The recipes for clusters: YAML that says what it seems to say, and the Slurm script under a Slurm made of two small scripts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from realmctl.artifacts import open_artifact
from tests.fixtures.chain import make_chain
from tests.fixtures.together import free_port
from tests.fixtures.waiting import wait_until

CLUSTER = Path(__file__).parents[2] / "examples" / "cluster"

SRUN = """#!{python}
import os, signal, subprocess, sys
command = sys.argv[2:]
nodes = int(os.environ["SLURM_NNODES"])
tasks = [subprocess.Popen(command, env={{**os.environ, "SLURM_NODEID": str(node)}}) for node in range(nodes)]
signal.signal(signal.SIGTERM, lambda *_: [task.terminate() for task in tasks])
codes = [task.wait() for task in tasks]
sys.exit(max(codes))
"""
SCONTROL = """#!/bin/sh
case "$1" in
  show) echo 127.0.0.1 ;;
  requeue) echo "$2" >> "$REQUEUED" ;;
esac
"""


def test_the_ray_job_of_kubernetes_gives_gpus_to_the_workers_alone():
    job = yaml.safe_load((CLUSTER / "kuberay-job.yaml").read_text())["spec"]
    head, (workers,) = job["rayClusterSpec"]["headGroupSpec"], job["rayClusterSpec"]["workerGroupSpecs"]

    def limits(group):
        return group["template"]["spec"]["containers"][0]["resources"]["limits"]

    assert "nvidia.com/gpu" in limits(workers) and "nvidia.com/gpu" not in limits(head)
    assert workers["template"]["spec"]["volumes"] == head["template"]["spec"]["volumes"]
    assert job["entrypoint"].count("--executor ray") == 3


def test_the_ray_cluster_file_is_one_that_ray_accepts():
    ray_schema = pytest.importorskip("ray.autoscaler._private.util")
    config = yaml.safe_load((CLUSTER / "ray-cluster.yaml").read_text())
    ray_schema.validate_config({"available_node_types": {}, **ray_schema.prepare_config(config)})


@pytest.fixture
def slurm(tmp_path):
    """The environment of a job with two nodes of two processes, and `sbatch`'s part: to start the script."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("srun", SRUN.format(python=sys.executable)), ("scontrol", SCONTROL)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    make_chain(tmp_path / "artifacts")
    path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {
        **os.environ,
        "PATH": path,
        "WORKSPACE": str(tmp_path / "artifacts"),
        "SLURM_JOB_ID": "17",
        "SLURM_NNODES": "2",
        "SLURM_JOB_NODELIST": "here",
        "PROCESSES_PER_NODE": "2",
        "OMP_NUM_THREADS": "1",
        "REQUEUED": str(tmp_path / "requeued"),
        "MASTER_PORT": str(free_port()),
    }
    command = [
        "bash",
        str(CLUSTER / "slurm.sh"),
        "--steps",
        "120",
        "--batch-size",
        "4",
        "--lr",
        "1e-2",
        "--warmup",
        "2",
        "--candidates",
        "4",
        "--refresh-every",
        "4",
        "--checkpoint-every",
        "2",
        "--seed",
        "3",
    ]

    def start():
        return subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)

    return start


@pytest.mark.slow
def test_a_job_that_is_warned_is_queued_again_and_then_ends(tmp_path, slurm):
    job = slurm()
    model = tmp_path / "artifacts/model"
    wait_until(lambda: list(model.glob("v1.partial/**/step-*/state.json")) or job.poll() is not None)
    assert job.poll() is None, job.stderr.read()[-3000:]
    job.send_signal(signal.SIGUSR1)
    _, messages = job.communicate(timeout=200)
    assert job.returncode == 75, messages[-3000:]
    assert (tmp_path / "requeued").read_text() == "17\n" and not (model / "v1").exists()
    job = slurm()
    _, messages = job.communicate(timeout=400)
    assert job.returncode == 0, messages[-3000:]
    assert "continuing after step" in messages
    made = open_artifact(model)
    assert made.metrics["steps"] == 120 and (tmp_path / "requeued").read_text() == "17\n"
