"""The commit: after a kill or a full disk at any step there is a whole version or none, and the next run succeeds."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress

import pytest

from realmctl.artifacts import open_artifact, verify, version_numbers
from realmctl.artifacts.manifest import MANIFEST
from realmctl.errors import ResourceError
from tests.fixtures.faults import Died, faults, recorded_calls
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
        assert {path.name for path in out.iterdir()} == {"v1", ".lock", ".last"}
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


def test_the_manifest_is_written_after_the_data_are_safe(tmp_path):
    with recorded_calls() as log:
        Plain().make(tmp_path / "plain")
    flushed = [path.name for name, path in log if name == "fsync"]
    assert {"text.txt", "copy.bin", "corpus.txt", "er", "deep", "v1.partial", "plain"} <= set(flushed)
    partial = tmp_path / "plain" / "v1.partial"
    data = [
        log.index(("fsync", partial / name))
        for name in ("text.txt", "deep/er/copy.bin", "deep/er", "deep", "corpus.txt")
    ]
    manifest = log.index(("fsync", partial / "manifest.json.writing"))
    moved = log.index(("rename", partial / "manifest.json"))
    assert max(data) < manifest < moved
    commit = [("fsync", partial), ("rename", partial.with_suffix("")), ("fsync", partial.parent)]
    assert log[-3:] == commit and log[moved + 1] == ("fsync", partial)
    (tmp_path / "plain" / "v1").rename(partial)
    with recorded_calls() as log:
        Plain().make(tmp_path / "plain")
    assert log[-3:] == commit
