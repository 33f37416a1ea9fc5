"""Losses, weights and vectors on CUDA against the CPU, in float32 and in bfloat16."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from realmctl.artifacts import Artifact, open_artifact
from realmctl.index.exact import ExactIndex
from stages.embed import Embed
from tests.fixtures.chain import metrics_of
from tests.fixtures.index import brute_force
from tests.fixtures.objectives import jobs_of
from tests.fixtures.together import Job, make_alone

OBJECTIVES = (
    "mlm",
    "mlm-micro",
    "practice",
    "ict",
    "ict-cache",
    "spider",
    "dpr",
    "condenser",
    "cocondenser",
    "pretrain",
    "pretrain-micro",
    "finetune",
    "finetune-dev",
    "closed-book",
)
LOSS = {"rel": 1e-3, "abs": 1e-4}
"""Kernels of a GPU add in another order than those of a CPU."""


def on(job: Job, **fields: str) -> Job:
    """The job with other fields."""
    return dataclasses.replace(job, fields={**job.fields, **fields})


def losses(made: Artifact) -> list[float]:
    return [line["loss"] for line in metrics_of(made) if "loss" in line]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_losses_in_float32_are_those_of_the_cpu(chain, tmp_path, name):
    job = jobs_of(chain, tmp_path)[name]
    here, there = (make_alone(on(job, device=device), tmp_path / device) for device in ("cpu", "cuda"))
    assert here.recipe == there.recipe and losses(there) == pytest.approx(losses(here), **LOSS)


@pytest.mark.parametrize("name", ["mlm", "ict", "pretrain", "finetune"])
def test_losses_in_bfloat16_are_near_those_in_float32(chain, tmp_path, name):
    job = jobs_of(chain, tmp_path)[name]
    exact, rounded = (
        make_alone(on(job, device="cuda", precision=precision), tmp_path / precision) for precision in ("fp32", "bf16")
    )
    assert losses(rounded)[0] == pytest.approx(losses(exact)[0], rel=0.05)
    assert losses(rounded) != losses(exact), "bfloat16 was not used"


def test_vectors_of_blocks_are_those_of_the_cpu(chain, tmp_path):
    vectors = [
        np.load(
            Embed(blocks=chain.blocks, retriever=chain.retriever, device=device, precision="fp32")
            .make(tmp_path / device)
            .file("embeddings.npy")
        )
        for device in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(vectors[1], vectors[0], atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("rows_at_once", [7, 2**17])
def test_the_exact_index_on_the_device_is_brute_force_ties_included(monkeypatch, dtype, rows_at_once):
    """Small whole numbers have exact scores, most of them tied."""
    monkeypatch.setattr("realmctl.index.exact.ROWS_AT_ONCE", rows_at_once)
    draw = np.random.default_rng(0)
    matrix, queries = (draw.integers(-2, 3, (count, 4)).astype(dtype) for count in (500, 9))
    scores, ids = ExactIndex(matrix, "cuda").search(queries.astype(np.float32), 20)
    wanted_scores, wanted_ids = brute_force(matrix.astype(np.float32), queries.astype(np.float32), 20)
    assert (ids == wanted_ids).all() and (scores == wanted_scores).all()


def test_the_index_of_a_model_trained_on_the_device_is_found_by_the_cpu(chain, tmp_path):
    made = make_alone(on(jobs_of(chain, tmp_path)["pretrain"], device="cuda"), tmp_path / "model")
    index = open_artifact(made.path).part("index")
    vectors = np.load(index.file("vectors.npy")).astype(np.float32)
    here, there = (ExactIndex(vectors, device).search(vectors[:8], 5) for device in ("cpu", "cuda"))
    torch.testing.assert_close(torch.from_numpy(here[0]), torch.from_numpy(there[0]), atol=1e-4, rtol=1e-4)
