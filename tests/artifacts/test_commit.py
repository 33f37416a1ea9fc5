"""The commit: killed or out of space at any step, there is a whole version or none, and the next run goes well."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact, verify, version_numbers
from realmctl.artifacts.manifest import MANIFEST
from realmctl.errors import ResourceError
from realmctl.storage import durable
from tests.fixtures.faults import Died, faults
from tests.fixtures.small_stages import Child, Model, Plain


@pytest.mark.parametrize("lasting", [True, False])
def test_killed_at_any_step_there_is_a_whole_version_or_none(tmp_path, lasting):
    out, k = tmp_path / "plain", 0
    while True:
        with faults(k, Died, lasting=lasting) as injected, suppress(Died):
            Plain().make(out)
        for number in version_numbers(out):
            verify(open_artifact(out / f"v{number}"))
        again = Plain().make(out)
        assert (again.path.name, verify(again) > 0) == ("v1", True)
        assert {path.name for path in out.iterdir()} == {"v1", ".lock"}
        if not injected.struck:
            break
        shutil.rmtree(out)
        k += 1
    assert k > 25


def test_killed_at_any_step_of_a_model_with_parts(tmp_path):
    child = Child(plain=Plain().make(tmp_path / "plain")).make(tmp_path / "child")
    whole, k = Model(child=child).make(tmp_path / "whole"), 0
    while True:
        with faults(k, Died, lasting=True) as injected, suppress(Died):
            Model(child=child).make(tmp_path / "model")
        again = Model(child=child).make(tmp_path / "model")
        verify(again)
        assert (again.content, again.path.name) == (whole.content, "v1")
        if not injected.struck:
            break
        shutil.rmtree(tmp_path / "model")
        k += 1
    assert k > 50
    verify(child)


def test_a_full_disk_at_any_step_leaves_the_old_version_and_nothing_half_written(tmp_path):
    out, k = tmp_path / "plain", 0
    while True:
        old = Plain(text="old").make(out)
        with faults(k, lambda: OSError(errno.ENOSPC, "No space left on device"), lasting=False) as injected:
            try:
                Plain(text="new").make(out)
            except ResourceError as error:
                assert error.exit_code == 5 and "\n" not in str(error)
        verify(open_artifact(old.path))
        assert all((partial / MANIFEST).exists() for partial in out.glob("*.partial"))
        assert Plain(text="new").make(out).path.name == "v2"
        assert not list(out.glob("*.partial"))
        if not injected.struck:
            break
        shutil.rmtree(out)
        k += 1
    assert k > 25


def test_the_manifest_is_written_after_the_data_are_safe(tmp_path, monkeypatch):
    log: list[str] = []
    fsync, rename = durable.sync, Path.rename

    def logged_sync(path: Path) -> None:
        log.append(f"sync {path.name}")
        fsync(path)

    def logged_rename(path: Path, target: Path) -> Path:
        log.append(f"rename {path.name}")
        return rename(path, target)

    monkeypatch.setattr("realmctl.artifacts.manifest.sync", logged_sync)
    monkeypatch.setattr("realmctl.artifacts.writer.sync", logged_sync)
    monkeypatch.setattr(Path, "rename", logged_rename)
    Plain().make(tmp_path / "plain")
    data = [log.index(f"sync {name}") for name in ("text.txt", "copy.bin", "er", "deep")]
    manifest, moved = log.index("sync manifest.json.writing"), log.index("rename manifest.json.writing")
    last = log.index("rename v1.partial")
    assert max(data) < manifest < moved < last
    assert log[last - 1 : last + 2] == ["sync v1.partial", "rename v1.partial", "sync plain"]
    (tmp_path / "plain" / "v1").rename(tmp_path / "plain" / "v1.partial")
    log.clear()
    Plain().make(tmp_path / "plain")
    assert log == ["sync v1.partial", "rename v1.partial", "sync plain"]
