"""A run that was interrupted and continued equals one that never stopped, bit for bit."""

from __future__ import annotations

import os
import signal

import pytest

from realmctl.artifacts import open_artifact, verify
from realmctl.errors import InterruptedRun, MismatchError
from realmctl.training.realm import RealmObjective
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit
from tests.faults.children import ended, forked
from tests.fixtures.chain import Stopped, finetune, metrics_of, pretrain, stop_at


@pytest.fixture(scope="module")
def whole(chain):
    """The model of a run that never stopped."""
    return pretrain(chain).make(chain.folder / "whole")


def test_the_same_run_twice_is_the_same_thing(chain, whole, tmp_path):
    again = pretrain(chain).make(tmp_path / "model")
    assert again.content == whole.content
    assert again.manifest.recipe == whole.manifest.recipe


@pytest.mark.parametrize("step", [1, 3, 4, *(pytest.param(each, marks=pytest.mark.slow) for each in (2, 5))])
def test_interrupted_by_an_error_and_continued(chain, whole, tmp_path, monkeypatch, step):
    with monkeypatch.context() as patch:
        stop_at(patch, step)
        with pytest.raises(Stopped):
            pretrain(chain).make(tmp_path / "model")
    model = pretrain(chain).make(tmp_path / "model")
    assert model.content == whole.content
    assert [line["step"] for line in metrics_of(model)] == [1, 2, 3, 4, 5, 6]
    verify(model)


def test_interrupted_after_the_refresh_of_a_step(chain, whole, tmp_path, monkeypatch):
    """The index of step 4 lies there already when step 4 is taken again: making it must not move the dropout."""
    settings = {"refresh_every": 2, "checkpoint_every": 4}
    expected = pretrain(chain, **settings).make(tmp_path / "expected")
    with monkeypatch.context() as patch:
        plain = RealmObjective.draw

        def draw(objective, step):
            if step == 4:
                raise Stopped
            return plain(objective, step)

        patch.setattr(RealmObjective, "draw", draw)
        with pytest.raises(Stopped):
            pretrain(chain, **settings).make(tmp_path / "model")
    assert (tmp_path / "model/v1.partial/live/indexes/step-00000004").is_dir()
    assert pretrain(chain, **settings).make(tmp_path / "model").content == expected.content


def test_interrupted_again_and_again(chain, whole, tmp_path, monkeypatch):
    for step in (1, 3, 3, 4, 5):
        with monkeypatch.context() as patch:
            stop_at(patch, step)
            with pytest.raises(Stopped):
                pretrain(chain).make(tmp_path / "model")
    assert pretrain(chain).make(tmp_path / "model").content == whole.content


@pytest.fixture
def heeded(number):
    """Heed a signal, even where the tests were started in the background or by nohup, which make them ignore some."""
    default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    former = signal.signal(number, default)
    yield
    signal.signal(number, former)


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize(
    ("number", "error"),
    [
        (signal.SIGTERM, InterruptedRun),
        *(
            pytest.param(each, InterruptedRun, marks=pytest.mark.slow)
            for each in (signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT)
        ),
        (signal.SIGINT, KeyboardInterrupt),
    ],
)
def test_a_signal_saves_the_step_it_came_in(chain, whole, tmp_path, monkeypatch, number, error):
    with monkeypatch.context() as patch:
        stop_at(patch, 2, lambda: os.kill(os.getpid(), number))
        with pytest.raises(error):
            pretrain(chain, checkpoint_every=100).make(tmp_path / "model")
    checkpoints = tmp_path / "model/v1.partial/.scratch/checkpoints"
    assert [path.name for path in checkpoints.iterdir()] == ["step-00000003"]
    assert pretrain(chain, checkpoint_every=100).make(tmp_path / "model").content == whole.content


def test_a_signal_in_the_last_step_stops_before_the_last_refresh(chain, whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 5, lambda: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(InterruptedRun, match="step 6 of 6"):
            pretrain(chain).make(tmp_path / "model")
    assert pretrain(chain).make(tmp_path / "model").content == whole.content


def test_sigkill(chain, whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 5, lambda: os.kill(os.getpid(), signal.SIGKILL))
        child = forked(lambda: pretrain(chain).make(tmp_path / "model"), tmp_path / "log")
    assert ended(child) == -signal.SIGKILL, (tmp_path / "log").read_text()
    assert pretrain(chain).make(tmp_path / "model").content == whole.content


@pytest.mark.parametrize("damage", ["flip", "delete", "empty"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(chain, whole, tmp_path, monkeypatch, capsys, damage):
    with monkeypatch.context() as patch:
        stop_at(patch, 5)
        with pytest.raises(Stopped):
            pretrain(chain).make(tmp_path / "model")
    newest = tmp_path / "model/v1.partial/.scratch/checkpoints/step-00000004"
    if damage == "flip":
        data = bytearray((newest / "modules.safetensors").read_bytes())
        data[-1] ^= 1
        (newest / "modules.safetensors").write_bytes(data)
    elif damage == "delete":
        (newest / "optimizer.safetensors").unlink()
    else:
        (newest / "state.json").write_text("")
    assert pretrain(chain).make(tmp_path / "model").content == whole.content
    said = capsys.readouterr().err
    assert "step-00000004" in said and "Falling back" in said and "continuing after step 2" in said


def test_other_settings_do_not_wipe_an_unfinished_run(chain, tmp_path, monkeypatch):
    monkeypatch.setattr("realmctl.artifacts.unfinished.BRIEF_SECONDS", 0)
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(Stopped):
            pretrain(chain).make(tmp_path / "model")
    with pytest.raises(MismatchError, match=r"lr.*0\.01.*0\.02") as error:
        pretrain(chain, lr=0.02).make(tmp_path / "model")
    assert error.value.exit_code == 4
    assert (tmp_path / "model/v1.partial/.scratch/checkpoints/step-00000002").is_dir()


def test_knobs_may_change_on_the_way(chain, whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(Stopped):
            pretrain(chain).make(tmp_path / "model")
    assert pretrain(chain, checkpoint_every=1).make(tmp_path / "model").content == whole.content


def others(chain):
    """The other stages that train."""
    practice = {"blocks": chain.blocks, "bert": "scratch:L1-H16", "steps": 4, "batch_size": 4, "checkpoint_every": 2}
    return {
        "finetune": lambda: finetune(chain),
        "ict-init": lambda: IctInit(
            blocks=chain.blocks, encoder=chain.encoder, steps=4, batch_size=4, lr=1e-2, projection=8, checkpoint_every=2
        ),
        "mlm-init": lambda: MlmInit(
            blocks=chain.blocks, bert="scratch:L1-H16", steps=4, batch_size=4, length=16, checkpoint_every=2
        ),
        "practice": lambda: MlmInit(spans=chain.spans, **practice),
    }


@pytest.mark.parametrize(
    "name", ["finetune", "ict-init", "mlm-init", pytest.param("practice", marks=pytest.mark.house)]
)
def test_the_other_stages_resume_too(chain, tmp_path, monkeypatch, name):
    stage = others(chain)[name]()
    expected = stage.make(tmp_path / "expected")
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(Stopped):
            stage.make(tmp_path / "made")
    made = stage.make(tmp_path / "made")
    assert made.content == expected.content
    assert [line["step"] for line in metrics_of(made)] == [1, 2, 3, 4]
    assert open_artifact(tmp_path / "made").metrics["steps"] == 4


def test_a_stage_does_not_depend_on_what_ran_before_it(chain, tmp_path):
    """`realmctl run` makes many stages in one process."""
    import torch

    stage = others(chain)["ict-init"]()
    first = stage.make(tmp_path / "one")
    torch.rand(7)
    assert stage.make(tmp_path / "two").content == first.content
