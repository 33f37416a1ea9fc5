"""Damage to an unfinished run, on an objective of one weight: every file of a checkpoint, bit by bit."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
import torch
from safetensors import SafetensorError

from realmctl.errors import InputError, ResourceError
from realmctl.models.optimizer import BertAdamW
from realmctl.training import checkpoint
from realmctl.training.checkpoint import Checkpoints, newest_sound, remove_later, restore_modules, step_of
from realmctl.training.loop import train
from realmctl.training.settings.base import TrainSettings
from tests.faults.counting import count, rounds
from tests.fixtures.parabola import Parabola, lines, writer

SETTINGS = TrainSettings(steps=6, lr=0.1, warmup=0, checkpoint_every=2)


class Stop(Exception):
    """Raised by an objective in the middle of a run."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Weight and metrics of a run that never stopped."""
    folder, objective = tmp_path_factory.mktemp("whole"), Parabola()
    train(objective, SETTINGS, writer(folder), "toy")
    return objective.weight.weight.item(), lines(folder)


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    """A run that broke down in its sixth step, with the checkpoints of steps 2 and 4."""
    folder, objective = tmp_path_factory.mktemp("unfinished"), Parabola()
    plain = objective.draw

    def draw(step):
        if step == 5:
            raise Stop
        return plain(step)

    objective.draw = draw
    with pytest.raises(Stop):
        train(objective, SETTINGS, writer(folder), "toy")
    return folder


def resumed(unfinished, folder, damage):
    """Copy the unfinished run, damage it, and finish it. Returns what `whole` holds."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(unfinished, folder)
    damage(folder)
    objective = Parabola()
    train(objective, SETTINGS, writer(folder), "toy")
    return objective.weight.weight.item(), lines(folder)


def flip(path, bit):
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "stride"),
    [
        (".scratch/checkpoints/step-00000004/state.json", 97),
        (".scratch/checkpoints/step-00000004/metrics.jsonl", 127),
        (".scratch/checkpoints/step-00000004/modules.safetensors", 149),
        (".scratch/checkpoints/step-00000004/optimizer.safetensors", 251),
        (".scratch/checkpoints/step-00000002/state.json", 401),
        ("metrics.jsonl", 163),
    ],
)
def test_no_flipped_bit_of_an_unfinished_run_changes_what_it_ends_with(unfinished, whole, tmp_path, name, stride):
    bits = range(0, 8 * (unfinished / name).stat().st_size, max(1, stride // rounds()))
    for bit in bits:
        found = resumed(unfinished, tmp_path / "run", lambda folder, bit=bit: flip(folder / name, bit))
        assert found == whole, f"bit {bit} of {name}"
    count("single-bit flips in an unfinished run of one weight", len(bits), files=6)


@pytest.mark.parametrize("name", ["state.json", "metrics.jsonl", "modules.safetensors", "optimizer.safetensors"])
def test_a_cut_or_missing_file_falls_back_to_the_checkpoint_before(unfinished, whole, tmp_path, capsys, name):
    def cut(folder):
        path = folder / ".scratch/checkpoints/step-00000004" / name
        path.write_bytes(path.read_bytes()[:-3])

    def delete(folder):
        (folder / ".scratch/checkpoints/step-00000004" / name).unlink()

    for damage in (cut, delete):
        assert resumed(unfinished, tmp_path / "run", damage) == whole
        assert "continuing after step 2" in capsys.readouterr().err
        assert (tmp_path / "run/.scratch/quarantine/step-00000004-1").is_dir()


def test_without_a_usable_checkpoint_training_starts_from_the_beginning(unfinished, whole, tmp_path, capsys):
    def damage(folder):
        for path in folder.glob(".scratch/checkpoints/*/state.json"):
            flip(path, 100)

    assert resumed(unfinished, tmp_path / "run", damage) == whole
    assert "training starts from the beginning" in capsys.readouterr().err


def test_a_damaged_log_is_kept_in_quarantine_and_restored_from_the_checkpoint(unfinished, whole, tmp_path, capsys):
    (before := bytearray((unfinished / "metrics.jsonl").read_bytes()))[9] ^= 1
    found = resumed(unfinished, tmp_path / "run", lambda folder: flip(folder / "metrics.jsonl", 72))
    assert found == whole
    assert (tmp_path / "run/.scratch/quarantine/metrics.jsonl-1").read_bytes() == before
    said = capsys.readouterr().err
    assert "metrics.jsonl is damaged" in said and "continuing after step 4" in said  # no step is lost


def checkpoints_in(folder):
    modules, metrics = Parabola().modules, folder / "metrics.jsonl"
    metrics.touch()
    return Checkpoints(folder, modules, BertAdamW(modules.parameters()), metrics)


def test_the_newest_two_checkpoints_are_kept_and_the_newest_sound_one(tmp_path):
    checkpoints, kept = checkpoints_in(tmp_path), []
    for step, sound in [(2, True), (4, True), (6, False), (8, False), (10, False), (12, True), (14, False)]:
        checkpoints.save(step, {}, sound)
        kept.append(sorted(step_of(path) for path in tmp_path.glob("step-*")))
    assert kept == [[2], [2, 4], [4, 6], [4, 6, 8], [4, 8, 10], [10, 12], [12, 14]]
    assert (newest_sound(tmp_path), newest_sound(tmp_path, before=12)) == (12, 0)
    remove_later(tmp_path, 12)
    assert [path.name for path in tmp_path.glob("step-*")] == ["step-00000012"]


@pytest.mark.parametrize("damaged", [2, 4])
def test_a_process_that_is_told_its_checkpoint_loads_that_one_and_moves_none(tmp_path, damaged):
    checkpoints, restored = checkpoints_in(tmp_path), []
    for step in (2, 4):
        checkpoints.save(step, {"of": step})
    flip(tmp_path / f"step-{damaged:08d}/modules.safetensors", 100)
    assert checkpoints.restore(restored.append, 2) == (0 if damaged == 2 else 2)
    assert restored == ([] if damaged == 2 else [{"of": 2}])
    assert sorted(step_of(path) for path in tmp_path.glob("step-*")) == [2, 4]


@pytest.mark.parametrize("names", [(), ("weight.weight", "other"), ("other",)])
def test_weights_of_another_model_change_nothing(tmp_path, names):
    modules = Parabola().modules
    with pytest.raises(InputError, match="not those of this model"):
        restore_modules(modules, dict.fromkeys(names, torch.ones(1, 1)), tmp_path)
    assert modules["weight"].weight.item() == 0


def test_a_state_that_the_objective_cannot_restore_falls_back_with_the_initial_weights(unfinished, tmp_path):
    """The index that a checkpoint names may be lost for good."""
    shutil.copytree(unfinished, tmp_path / "run")
    objective = Parabola()
    optimizer = BertAdamW(objective.modules.parameters())
    folder = tmp_path / "run/.scratch/checkpoints"
    checkpoints = Checkpoints(folder, objective.modules, optimizer, tmp_path / "run/metrics.jsonl")

    def refuse(state):
        raise InputError("The index is gone.")

    assert checkpoints.restore(refuse) == 0
    assert objective.weight.weight.item() == 0 and not optimizer.state
    assert not list(folder.glob("step-*"))


@pytest.mark.parametrize("number", [28, 27, 122])
def test_a_disk_that_is_full_at_a_checkpoint_is_a_lack_of_resources(whole, tmp_path, monkeypatch, number):
    from realmctl.models import weights

    saved = []

    def save_file(tensors, path, metadata):
        saved.append(path)
        if len(saved) > 2:
            raise SafetensorError(f"Error while serializing: I/O error: full (os error {number})")
        return plain(tensors, path, metadata=metadata)

    plain = weights.save_file
    monkeypatch.setattr(weights, "save_file", save_file)
    with pytest.raises(ResourceError) as error:
        train(Parabola(), SETTINGS, writer(tmp_path), "toy")
    assert error.value.exit_code == 5 and "step-00000004" in str(error.value)
    assert [path.name for path in (tmp_path / ".scratch/checkpoints").iterdir()] == ["step-00000002"]
    monkeypatch.undo()
    objective = Parabola()
    train(objective, SETTINGS, writer(tmp_path), "toy")
    assert (objective.weight.weight.item(), lines(tmp_path)) == whole


def test_a_disk_that_is_full_at_a_line_of_the_log_is_a_lack_of_resources(whole, tmp_path):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (250, hard))
    try:
        with pytest.raises(ResourceError, match=r"metrics\.jsonl"):
            train(Parabola(), replace(SETTINGS, checkpoint_every=100), writer(tmp_path), "toy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    objective = Parabola()
    train(objective, SETTINGS, writer(tmp_path), "toy")
    assert (objective.weight.weight.item(), lines(tmp_path)) == whole


def test_a_failed_write_for_another_reason_is_raised_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "save_tensors", lambda tensors, path: (_ for _ in ()).throw(SafetensorError("odd")))
    with pytest.raises(SafetensorError, match="odd"):
        train(Parabola(), SETTINGS, writer(tmp_path), "toy")
