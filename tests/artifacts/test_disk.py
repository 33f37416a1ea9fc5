"""Durable writes: the new content or the old, nothing replaced by a rename, and links left alone."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from realmctl.artifacts import disk
from realmctl.artifacts.disk import CheckedFile, make_folders, open_regular, read_small, rename_to_fresh, write_file
from realmctl.errors import InputError
from tests.fixtures.faults import recorded_calls


def broken() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_manifest_whose_folder_could_not_be_flushed_is_removed(tmp_path, monkeypatch):
    (tmp_path / "old").write_bytes(b"old")
    monkeypatch.setattr(disk, "sync", lambda path: (_ for _ in ()).throw(broken()) if path == tmp_path else None)
    for name in ("new", "old"):
        with pytest.raises(OSError, match="Input/output"):
            write_file(tmp_path / name, b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"old": b"new"}


@pytest.mark.parametrize("durable", [True, False])
def test_who_writes_a_shared_file_at_once_does_not_meet(tmp_path, monkeypatch, durable):
    """A second writer comes and goes while the first has written half of its work: between its file and its name."""
    compare = CheckedFile._compare

    def interrupted(file: CheckedFile) -> None:
        monkeypatch.setattr(CheckedFile, "_compare", compare)
        write_file(tmp_path / "pin", b"second", durable, shared=True)
        assert (tmp_path / "pin").read_bytes() == b"second"
        compare(file)

    monkeypatch.setattr(CheckedFile, "_compare", interrupted)
    write_file(tmp_path / "pin", b"first", durable, shared=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"pin": b"first"}
    monkeypatch.setattr(CheckedFile, "_compare", lambda file: (_ for _ in ()).throw(broken()))
    with pytest.raises(OSError, match="Input/output"):
        write_file(tmp_path / "pin", b"third", durable, shared=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"pin": b"first"}


def test_a_rename_never_replaces(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with pytest.raises(FileExistsError):
        rename_to_fresh(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a").is_dir()


def test_folders_that_a_killed_run_made_are_flushed_too(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    with recorded_calls() as log:
        make_folders(tmp_path / "a" / "b" / "c")
    assert {("fsync", path) for path in (tmp_path, tmp_path / "a", tmp_path / "a" / "b")} <= set(log)


def test_a_checked_file_replaces_a_link_and_leaves_its_target(tmp_path):
    (tmp_path / "mine").write_text("mine")
    for make in (os.symlink, os.link):
        make(tmp_path / "mine", tmp_path / "new")
        file = CheckedFile(tmp_path / "new", b"head")
        file.write(b" body")
        file.close(b"HEAD")
        assert (tmp_path / "new").read_bytes() == b"HEAD body" and (tmp_path / "mine").read_text() == "mine"
        (tmp_path / "new").unlink()


def test_a_small_file_is_flushed_before_it_gets_its_name_and_its_folder_after(tmp_path):
    with recorded_calls() as log:
        write_file(tmp_path / "a", b"new")
    assert log == [("fsync", tmp_path / "a.writing"), ("rename", tmp_path / "a"), ("fsync", tmp_path)]
    assert read_small(tmp_path / "a", limit=3) == b"new"


def test_a_file_larger_than_its_limit_is_not_read(tmp_path):
    (tmp_path / "a").write_bytes(b"1234")
    assert read_small(tmp_path / "a", limit=4) == b"1234"
    with pytest.raises(InputError, match="3 bytes"):
        read_small(tmp_path / "a", limit=3)


def test_only_regular_files_are_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path, what in {"pipe": "a named pipe", "link": "a symbolic link", ".": "a folder"}.items():
        with pytest.raises(InputError, match=what):
            open_regular(tmp_path / path)
    with pytest.raises(InputError, match="a character device"):
        open_regular(Path("/dev/zero"))
