"""Training in several processes against one process: losses and weights of every stage that trains."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact
from tests.fixtures.chain import Stopped, stop_at
from tests.fixtures.objectives import jobs_of, require_equal
from tests.fixtures.together import Job, make_alone, make_together

<<<<<<< HEAD
PRETRAINING = {
    "steps": 4, "batch_size": 8, "lr": 1e-3, "warmup": 2, "candidates": 4, "refresh": "inline", "refresh_every": 2,
    "precision": "fp32",
}  # fmt: skip


def write_labelled(path: Path) -> Path:
    """Tevatron's training file: where each person was born, with the person's blocks as passages."""
    lines = []
    for name, (birth, work) in documents().items():
        positive, negative = ({"title": name, "text": " ".join(block)} for block in (birth, work))
        record = {"query": f"Where was {name} born?", "positive_passages": [positive], "negative_passages": [negative]}
        lines.append(json.dumps(record) + "\n")
    path.write_text("".join(lines))
    return path


def jobs_of(chain: Chain, folder: Path) -> dict[str, Job]:
    """A job for each objective, with and without micro-batches."""
    encoder = own_stages()["mlm-init"](
        blocks=chain.blocks, bert="scratch:L1-H16", steps=1, batch_size=2, length=24, dropout=0.0
    ).make(folder / "encoder")
    retriever = make_retriever(folder / "retriever", chain.blocks, dropout=0.0)
    index = make_index(folder, chain.blocks, retriever)
    graphs = make_index(folder / "hnsw", chain.blocks, retriever, type="hnsw", shards=3)
    parts = {"blocks": chain.blocks, "retriever": retriever, "index": index, "encoder": encoder}
    pretraining = {**parts, "spans": chain.spans, **PRETRAINING}
    tuning = {**parts, "questions": chain.questions, **FINETUNING, "lr": 1e-3, "precision": "fp32"}
    short = {"steps": 3, "batch_size": 8, "lr": 1e-3, "warmup": 1, "precision": "fp32"}
    scratch = {"blocks": chain.blocks, "bert": "scratch:L1-H16", "length": 24, "dropout": 0.0, **short}
    condenser = {"blocks": chain.blocks, "encoder": encoder, "length": 24, "skip_from": 0, **short}
    long = make_blocks(folder / "long", documents_that_share_a_span())
    reader = own_stages()["mlm-init"](
        blocks=long, bert="scratch:L1-H16", steps=1, batch_size=2, length=24, dropout=0.0
    ).make(folder / "long-encoder")
    labelled = write_labelled(folder / "labelled.jsonl")
    closed = {name: value for name, value in tuning.items() if name not in ("retriever", "index")}
    return {
        "mlm": Job("mlm-init", scratch),
        "mlm-micro": Job("mlm-init", {**scratch, "micro_batch": 3}),
        "practice": Job("mlm-init", {**scratch, "spans": chain.spans}),
        "ict": Job("ict-init", {"blocks": chain.blocks, "encoder": encoder, "null_share": 0.2, "projection": 16, **short}),
        "ict-cache": Job("ict-init", {"blocks": chain.blocks, "encoder": encoder, "null_share": 0.2, "micro_batch": 3, **short}),
        "spider": Job("spider-init", {"blocks": long, "encoder": reader, "projection": 16, "micro_batch": 3, **short}),
        "dpr": Job("dpr-finetune", {"retriever": retriever, "passages": labelled, "micro_batch": 3, "optimizer": "bert", **short}),
        "condenser": Job("condenser-init", {**condenser, "micro_batch": 3}),
        "cocondenser": Job("condenser-init", {**condenser, "contrastive": True, "micro_batch": 3}),
        "pretrain": Job("pretrain", pretraining),
        "pretrain-shards": Job("pretrain", {**pretraining, "index_shards": True}),
        "pretrain-micro": Job("pretrain", {**pretraining, "micro_batch": 3, "marginal": "sequence"}),
        "finetune": Job("finetune", tuning),
        "finetune-shards": Job("finetune", {**tuning, "index": graphs, "index_shards": True}),
        "finetune-dev": Job("finetune", {**tuning, "micro_batch": 1, "dev": chain.questions, "dev_every": 2}),
        "closed-book": Job("finetune", {**closed, "retrieval": "none", "micro_batch": 1}),
    }  # fmt: skip


def require_equal(one: Artifact, other: Artifact) -> None:
    """The same recipe, and but for the order of sums the same metrics and weights."""
    assert one.recipe == other.recipe
    lines, expected = metrics_of(one), metrics_of(other)
    assert len(lines) == len(expected) and expected[0]["loss"] > 0
    for mine, theirs in zip(lines, expected, strict=True):
        assert mine.pop("alarms", None) == theirs.pop("alarms", None)
        assert mine == pytest.approx(theirs, rel=2e-4, abs=2e-5)
    files = [path.relative_to(other.path) for path in other.path.rglob("*.safetensors")]
    assert files
    for file in files:
        torch.testing.assert_close(load_file(one.path / file), load_file(other.path / file), atol=2e-4, rtol=1e-3)


=======
>>>>>>> scale
FAST = ("mlm-micro", "condenser", "cocondenser", "ict-cache", "spider", "pretrain-shards", "finetune-shards")


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
    killed = (tmp_path / "many" / "killed", Job("pretrain", jobs["pretrain"].fields, ends=1))
    found = make_together(
        [
            [*both, (tmp_path / "recipes", Job("ict-init", ict)), (tmp_path / "here", jobs["ict"]), killed],
            [*both, (tmp_path / "recipes", Job("ict-init", {**ict, "seed": 1})), (tmp_path / "there", jobs["ict"]), killed],
        ],
        tmp_path,
    )  # fmt: skip
    first, second = found
    count = len(both)
    assert first[:count] == second[:count] == [(0, "")] * count
    for name, expected in {**alone, "resumed": alone["pretrain-shards"]}.items():
        require_equal(open_artifact(tmp_path / "many" / name), expected)
        assert [path.name for path in (tmp_path / "many" / name).glob("v*")] == ["v1"]
    for code, error in (first[count], second[count]):
        assert code == 4 and "different recipes" in error and "Process 1 differs from process 0" in error
    for code, error in (first[count + 1], second[count + 1]):
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
