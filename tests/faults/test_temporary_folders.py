"""Temporary folders of killed processes are removed by the next run; those of living processes are left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from realmctl.artifacts.temporary import temporary_folder
from realmctl.extras.hub.exports.new_path import new_path
from tests.faults.children import ended, forked
from tests.fixtures.small_stages import Plain

KILLED = """
import os, signal
from tests.fixtures.small_stages import Plain
with Plain().localised():
    {act}
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty temporary directory, for this process and its children."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def child(act: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", KILLED.format(act=act)], cwd=ROOT, env=environment, stdout=subprocess.PIPE
    )


def test_the_folder_of_a_killed_run_is_removed_by_the_next_run(temporary, tmp_path):
    run = child("os.kill(os.getpid(), signal.SIGKILL)")
    run.communicate(timeout=300)
    assert run.returncode == -signal.SIGKILL and len(list(temporary.glob("realmctl-*"))) >= 1
    Plain().make(tmp_path / "plain")
    assert list(temporary.iterdir()) == []


def test_what_a_killed_export_left_is_removed_by_the_next_export(tmp_path):
    place = tmp_path / "place"

    def act() -> None:
        with new_path(place / "first") as path:
            path.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)

    assert ended(forked(act, tmp_path / "log")) == -signal.SIGKILL and len(list(place.iterdir())) == 2
    with new_path(place / "second") as path:
        path.write_text("whole")
    assert [left.name for left in place.iterdir()] == ["second"]


def test_the_folder_of_a_living_run_is_left_alone(temporary):
    run = child("print('ready', flush=True); signal.pause()")
    assert run.stdout is not None and run.stdout.readline() == b"ready\n"
    before = sorted(temporary.iterdir())
    with temporary_folder() as own:
        assert own not in before
    assert sorted(temporary.iterdir()) == before and len(before) == 2
    run.kill()
    run.communicate(timeout=300)


def test_foreign_names_and_links_are_left_alone(temporary, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    name = "realmctl-" + "0" * 16
    (temporary / name).symlink_to(tmp_path / "mine")
    (temporary / f"{name}.lock").write_text("")
    (temporary / "realmctl-notes").mkdir()
    (temporary / "realmctl-notes.lock").write_text("")
    with temporary_folder() as own:
        assert own.is_dir()
    assert (tmp_path / "mine" / "notes").read_text() == "mine"
    assert (temporary / "realmctl-notes").is_dir() and (temporary / "realmctl-notes.lock").exists()
