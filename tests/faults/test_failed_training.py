"""A disk that is full, fails or limits the size of files, in stages that train and build: exit code 5, then the same content."""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact, open_artifact, verify, version_numbers
from realmctl.errors import ResourceError
from realmctl.pipeline import Stage
from stages.build_index import BuildIndex
from stages.embed import Embed
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit
from tests.faults.children import ended, forked
from tests.faults.counting import count, share
from tests.fixtures.chain import finetune, pretrain
from tests.fixtures.faults import faults

SEED, FAULTS, LIMITS = 22, 2, 2
"""Faults and limits of each stage in a round."""
ERRORS = [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO]
NOWHERE = Path(os.devnull)
SHORT = {"steps": 3, "batch_size": 4, "checkpoint_every": 1}


@pytest.fixture(scope="module")
def stages(chain, tmp_path_factory) -> dict[str, Stage]:
    embed = Embed(blocks=chain.blocks, retriever=chain.retriever)
    embeddings = embed.make(tmp_path_factory.mktemp("inputs") / "embeddings")
    return {
        "pretrain": pretrain(chain, steps=4, refresh_every=2, checkpoint_every=1),
        "finetune": finetune(chain, steps=2, checkpoint_every=1),
        "ict-init": IctInit(blocks=chain.blocks, encoder=chain.encoder, projection=8, **SHORT),
        "mlm-init": MlmInit(blocks=chain.blocks, bert="scratch:L1-H16", length=16, **SHORT),
        "embed": embed,
        "build-index": BuildIndex(embeddings=embeddings, type="hnsw", min_recall=0.0),
    }


NAMES = ["pretrain", "finetune", "ict-init", "mlm-init", "embed", "build-index"]


@pytest.fixture
def served(tmp_path, stages, request) -> tuple[Stage, str, Path, int]:
    """(the stage, the content that it ends with, a series that serves another version, its calls that change the store)"""
    stage, out = stages[request.param], tmp_path / "out"
    with faults(10**9, AssertionError, lasting=False) as counted:
        expected = stage.make(tmp_path / "whole").content
    shutil.copytree(_other(stages, request.param).make(tmp_path / "other").path, out / "v1")
    return stage, expected, out, counted.calls


def _other(stages: dict[str, Stage], name: str) -> Stage:
    """The same kind with other settings."""
    changes = {"embed": {"dtype": "float16"}, "build-index": {"m": 7}}.get(name, {"seed": 7})
    return type(stages[name])(**{**stages[name].__dict__, **changes})


def check_served(out: Path, versions: list[int]) -> None:
    assert version_numbers(out) == versions
    verify(open_artifact(out / "v1"))


def finished(stage: Stage, out: Path, expected: str) -> Artifact:
    made = stage.make(out)
    assert made.content == expected
    shutil.rmtree(made.path)
    (out / ".last").unlink()
    return made


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("served", NAMES, indirect=True)
def test_any_call_that_fails_is_exit_code_5_and_the_next_run_succeeds(served):
    stage, expected, out, calls = served
    draw, failed = random.Random(SEED), 0
    for _ in range(share(FAULTS)):
        number, at = draw.choice(ERRORS), draw.randrange(calls)
        with faults(
            at, lambda number=number: OSError(number, os.strerror(number)), lasting=draw.random() < 0.3
        ) as injected:
            try:
                stage.make(out)
            except ResourceError as error:
                assert error.exit_code == 5 and "\n" not in str(error)
                check_served(out, [1])
                failed += 1
        assert injected.struck
        finished(stage, out, expected)
    assert failed
    count("ENOSPC, EDQUOT, EFBIG and EIO in stages that train and build", failed, stages=len(NAMES), seed=SEED)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("served", NAMES, indirect=True)
def test_files_that_may_not_grow_are_exit_code_5_and_the_next_run_succeeds(served):
    """As `ulimit -f` does; safetensors and hnswlib write themselves."""
    stage, expected, out, _ = served
    draw, failed = random.Random(SEED), 0
    largest = max(path.stat().st_size for path in (out / "v1").rglob("*"))

    def limited(size: int) -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            stage.make(out)
        except ResourceError as error:
            return error.exit_code if "\n" not in str(error) else 1
        return 0

    for _ in range(share(LIMITS)):
        size = int(largest ** draw.uniform(0.5, 1))
        code = ended(forked(lambda size=size: limited(size), NOWHERE))
        assert code in (0, 5), f"files of at most {size} bytes: {code}"
        check_served(out, [1] if code else [1, 2])
        failed += bool(code)
        finished(stage, out, expected)
    assert failed
    count("files that may not grow (RLIMIT_FSIZE)", failed, stages=len(NAMES), seed=SEED)
