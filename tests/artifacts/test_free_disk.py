"""Free disk: the check counts what is there, and a stage refuses before it works."""

from __future__ import annotations

import shutil
from collections import namedtuple

import pytest

from realmctl.artifacts.disk import free_bytes, require_free_disk
from realmctl.errors import ResourceError
from realmctl.pipeline import Stage

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def kilobyte_free(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(10_000, 9_000, 1_000))


def test_the_disk_of_a_folder_that_is_not_made_yet(tmp_path):
    assert abs(free_bytes(tmp_path / "a/b/c") - shutil.disk_usage(tmp_path).free) < 1e9


def test_what_an_unfinished_run_has_is_counted(tmp_path, kilobyte_free):
    require_free_disk(tmp_path, 1_000, "it")
    with pytest.raises(ResourceError, match="it needs"):
        require_free_disk(tmp_path, 1_001, "it")
    (tmp_path / ".scratch").mkdir()
    (tmp_path / ".scratch/x").write_bytes(bytes(500))
    require_free_disk(tmp_path, 1_500, "it")
    with pytest.raises(ResourceError):
        require_free_disk(tmp_path, 1_501, "it")


class Large(Stage):
    """A stage that knows its size."""

    makes = "large"
    version = 1

    def estimate(self):
        return {"disk_bytes": 2_000.0}

    def run(self, out):
        raise AssertionError("it must not start")


def test_a_stage_refuses_before_it_works(tmp_path, kilobyte_free):
    with pytest.raises(ResourceError, match=r"v1\.partial"):
        Large().make(tmp_path / "large")
    assert not list((tmp_path / "large").glob("v*"))


def test_training_refuses_before_its_first_step(tmp_path, monkeypatch):
    from realmctl.training.loop import train
    from realmctl.training.settings.base import TrainSettings
    from tests.fixtures.parabola import Parabola, writer

    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(10_000, 9_953, 47))
    with pytest.raises(ResourceError, match="toy"):
        train(Parabola(), TrainSettings(steps=1, lr=1.0), writer(tmp_path / "a"), "toy")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(10_000, 9_952, 48))  # 4 x 3 numbers of 4 bytes
    train(Parabola(), TrainSettings(steps=1, lr=1.0), writer(tmp_path / "b"), "toy")
