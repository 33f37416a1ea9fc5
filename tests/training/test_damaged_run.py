"""Damage to the index and the snapshots of an unfinished pre-training run: training goes on, and ends with the same model."""

from __future__ import annotations

import resource
import shutil

import numpy as np
import pytest

from realmctl.artifacts import verify
from realmctl.errors import ResourceError
from stages.ict_init import IctInit
from tests.fixtures.chain import Stopped, pretrain, stop_at

SETTINGS = {"refresh_every": 2}
"""Checkpoints at steps 2 and 4, snapshots and indexes of steps 2 and 4; the checkpoint of step 4 names the index of step 2."""


@pytest.fixture(scope="module")
def whole(chain):
    """The model of a run that never stopped."""
    return pretrain(chain, **SETTINGS).make(chain.folder / "whole-of-damaged")


@pytest.fixture(scope="module")
def unfinished(chain, tmp_path_factory):
    """A run that broke down in its sixth step."""
    out = tmp_path_factory.mktemp("unfinished") / "model"
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 5)
        with pytest.raises(Stopped):
            pretrain(chain, **SETTINGS).make(out)
    return out


@pytest.fixture
def copy(unfinished, tmp_path):
    """A copy of the unfinished run, to be damaged."""
    shutil.copytree(unfinished, tmp_path / "model")
    return tmp_path / "model"


def change(path, position=-1):
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def flip_signs(path):
    """Turn every vector of an index around: a valid array of the same size, and other candidates."""
    path.chmod(0o644)
    vectors = np.load(path)
    np.save(path, -vectors)


def finish(chain, whole, copy):
    model = pretrain(chain, **SETTINGS).make(copy)
    verify(model)
    assert model.content == whole.content


@pytest.mark.parametrize("step", [2, 4])
@pytest.mark.parametrize("damage", ["signs", "manifest", "no manifest", "gone"])
def test_a_damaged_index_is_built_again(chain, whole, copy, capsys, step, damage):
    """It stopped training for good, or changed the model."""
    index = copy / f"v1.partial/live/indexes/step-{step:08d}"
    if damage == "signs":
        flip_signs(index / "vectors.npy")
    elif damage == "manifest":
        change(index / "manifest.json", 30)
    elif damage == "no manifest":
        (index / "manifest.json").unlink()
    else:
        shutil.rmtree(index)
    finish(chain, whole, copy)
    said = capsys.readouterr().err
    assert damage == "gone" or f"quarantine/step-{step:08d}-1" in said
    assert (f"index of step {step} is built again" in said) == (step == 2)  # at step 4 it is simply due


@pytest.mark.parametrize("step", [2, 4])
@pytest.mark.parametrize("file", ["manifest.json", "query/model.safetensors"])
def test_a_damaged_snapshot_is_set_aside(chain, whole, copy, capsys, step, file):
    snapshot = copy / f"v1.partial/live/snapshots/step-{step:08d}"
    path = snapshot / file if (snapshot / file).exists() else next(snapshot.rglob("*.safetensors"))
    change(path, 30 if file == "manifest.json" else -1)
    finish(chain, whole, copy)
    assert f"quarantine/step-{step:08d}-1" in capsys.readouterr().err


def test_an_index_that_is_lost_with_its_snapshot_falls_back_to_a_checkpoint_that_names_another(
    chain, whole, copy, capsys
):
    shutil.rmtree(copy / "v1.partial/live/indexes/step-00000002")
    shutil.rmtree(copy / "v1.partial/live/snapshots/step-00000002")
    finish(chain, whole, copy)
    assert "continuing after step 2" in capsys.readouterr().err


def test_damaged_messages_between_trainer_and_refresher_cost_nothing(chain, whole, copy):
    for name in ("refresh.json", "held.json"):
        change(copy / "v1.partial/live" / name, 20)
    finish(chain, whole, copy)


def test_a_file_that_may_not_grow_is_exit_code_5_and_no_traceback(chain, tmp_path):
    """safetensors told a full disk in an error of its own, with exit code 1."""
    settings = {"steps": 4, "batch_size": 4, "lr": 1e-2, "projection": 8, "checkpoint_every": 2}
    stage = IctInit(blocks=chain.blocks, encoder=chain.encoder, **settings)
    expected = stage.make(tmp_path / "expected")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20 * 1024, hard))  # as `ulimit -f 20` does
    try:
        with pytest.raises(ResourceError) as error:
            stage.make(tmp_path / "made")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert error.value.exit_code == 5 and ".safetensors" in str(error.value), "it names the file"
    assert stage.make(tmp_path / "made").content == expected.content
