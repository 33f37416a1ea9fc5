"""Training in several processes against one process: losses and weights of every stage that trains."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch.distributed import HashStore

from realmctl.artifacts import open_artifact
from realmctl.errors import InputError
from realmctl.training import data_parallel
from tests.fixtures.chain import Stopped, stop_at
from tests.fixtures.objectives import jobs_of, require_equal
from tests.fixtures.together import Job, make_alone, make_together

FAST = ("ict-cache", "pretrain-shards", "finetune-shards")


def require_together(jobs: Mapping[str, Job], folder: Path, count: int) -> None:
    """Make the jobs in one process and in `count`, and compare."""
    alone = {name: make_alone(job, folder / "one" / name) for name, job in jobs.items()}
    pairs = [(folder / "many" / name, job) for name, job in jobs.items()]
    assert make_together([pairs] * count, folder) == [[(0, "")] * len(jobs)] * count
    for name, expected in alone.items():
        require_equal(open_artifact(folder / "many" / name), expected)
        assert [path.name for path in (folder / "many" / name).glob("v*")] == ["v1"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", [2, 4])
def test_several_processes_learn_what_one_learns(chain, tmp_path, count):
    require_together(jobs_of(chain, tmp_path), tmp_path, count)


@pytest.mark.slow
def test_two_processes_learn_what_one_learns_and_refuse_what_differs(chain, tmp_path, monkeypatch):
    """All in one start of two processes, because a start takes seconds."""
    jobs = jobs_of(chain, tmp_path)
    chosen = {name: jobs[name] for name in FAST}
    alone = {name: make_alone(job, tmp_path / "one" / name) for name, job in chosen.items()}
    resumed = Job("pretrain", {**jobs["pretrain"].fields, "checkpoint_every": 1})
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(Stopped):
            make_alone(resumed, tmp_path / "many" / "resumed")
    ict = jobs["ict"].fields
    both = [(tmp_path / "many" / name, job) for name, job in chosen.items()]
    both += [(tmp_path / "many" / "resumed", resumed), (tmp_path / "many" / "ict", jobs["ict"])]
    both += [
        (tmp_path / "diverges", Job("ict-init", {**ict, "lr": 1e6, "warmup": 0})),
        (
            tmp_path / "explodes",
            Job("ict-init", {**ict, "lr": 300.0, "warmup": 0, "steps": 12, "stop_on": ["loss_exploded"]}),
        ),
    ]
    killed = (tmp_path / "many" / "killed", Job("pretrain", jobs["pretrain"].fields, ends=1))
    found = make_together(
        [
            [*both, (tmp_path / "recipes", Job("ict-init", ict)), (tmp_path / "here", jobs["ict"]), killed],
            [
                *both,
                (tmp_path / "recipes", Job("ict-init", {**ict, "seed": 1})),
                (tmp_path / "there", jobs["ict"]),
                killed,
            ],
        ],
        tmp_path,
    )
    first, second = found
    made = len(both)
    assert first[: made - 2] == second[: made - 2] == [(0, "")] * (made - 2)
    for name, alarmed in (("diverged", made - 2), ("loss_exploded", made - 1)):
        assert all(code == 6 and name in error for code, error in (first[alarmed], second[alarmed]))
    for name, expected in {**alone, "resumed": alone["pretrain-shards"]}.items():
        require_equal(open_artifact(tmp_path / "many" / name), expected)
        assert [path.name for path in (tmp_path / "many" / name).glob("v*")] == ["v1"]
    for code, error in (first[made], second[made]):
        assert code == 4 and "different recipes" in error and "Process 1 differs from process 0" in error
    for code, error in (first[made + 1], second[made + 1]):
        assert code == 3 and "process 1 of 2 does not see the folder" in error
    assert not list(tmp_path.glob("recipes/v*")) and not list(tmp_path.glob("*here/v*"))
    assert second[-1][0] == -9
    assert first[-1][0] == 5 and "process 0 of 2 lost the connection" in first[-1][1]
    assert not (tmp_path / "many" / "killed" / "v1").exists()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_that_fails_is_named_by_the_others(chain, tmp_path, rank):
    job = Job("pretrain", jobs_of(chain, tmp_path)["pretrain"].fields, ends=rank, how="error")
    found = make_together([[(tmp_path / "model", job)]] * 2, tmp_path)
    assert found[rank] == [(3, "The disk of this host is gone.")]
    assert found[1 - rank] == [(3, f"process {rank} of 2 failed: The disk of this host is gone.")]
    assert not (tmp_path / "model" / "v1").exists()


def test_a_process_that_fails_leaves_its_group(monkeypatch):
    """PyTorch 2.13 aborts about every second process that ends with a broken group of gloo: exit code 134 in place of ours."""
    left: list[str] = []
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(data_parallel, "rendezvous", lambda *_, **__: iter([(HashStore(), 0, 2)]))
    monkeypatch.setattr(data_parallel, "_name_of_this_start", lambda *_: "start")
    monkeypatch.setattr(data_parallel.dist, "init_process_group", lambda *_, **__: None)
    monkeypatch.setattr(data_parallel.dist, "destroy_process_group", lambda: left.append("group"))
    with pytest.raises(InputError, match="gone"), data_parallel.process_group(torch.device("cpu")):
        raise InputError("The disk of this host is gone.")
    assert left == ["group"]
