"""`realmctl gc` on artifacts: what it keeps, and what readers and writers see beside it."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from realmctl.artifacts import artifact as artifact_module
from realmctl.artifacts import gc as gc_module
from realmctl.artifacts import lease, open_artifact, verify
from realmctl.artifacts.gc import Collected, collect
from realmctl.artifacts.manifest import Origin, read_manifest, sealed
from realmctl.errors import ConfigError, InputError
from tests.faults.counting import count
from tests.fixtures.small_stages import Child, Model, Plain


def plain(folder: Path, text: str):
    return Plain(text=text).make(folder / "plain")


def numbers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def names(found: Collected) -> list[str]:
    return [version.path.name for version in found.gone]


def test_by_default_nothing_is_deleted(tmp_path):
    for text in "abc":
        plain(tmp_path, text)
    value = collect([tmp_path], 1, delete=False)
    assert names(value) == ["v1", "v2"] and not value.deleted
    assert numbers(tmp_path / "plain") == ["v1", "v2", "v3"]
    assert value.bytes == sum(open_artifact(tmp_path / f"plain/v{n}").total_bytes() for n in (1, 2))
    assert names(collect([tmp_path], 1, delete=True)) == ["v1", "v2"]
    assert numbers(tmp_path / "plain") == ["v3"]
    assert plain(tmp_path, "d").path.name == "v4"  # no number is given again


def test_the_last_versions_and_the_inputs_of_others_are_kept(tmp_path):
    for text in "abcd":
        made = plain(tmp_path, text)
        if text == "b":
            Child(plain=made).make(tmp_path / "child")
        del made
    assert names(collect([tmp_path], 2, delete=True)) == ["v1"]
    assert numbers(tmp_path / "plain") == ["v2", "v3", "v4"]
    verify(open_artifact(tmp_path / "child"))


def test_a_part_that_another_version_needs_keeps_the_whole(tmp_path):
    child = Child(plain=plain(tmp_path, "a")).make(tmp_path / "child")
    first = Model(child=child, text="one").make(tmp_path / "model")
    Child(plain=first.part("plain")).make(tmp_path / "grandchild")
    Model(child=child, text="two").make(tmp_path / "model")
    del first
    assert names(collect([tmp_path], 1, delete=True)) == []
    assert numbers(tmp_path / "model") == ["v1", "v2"]


def test_what_an_unfinished_run_was_started_with_is_kept(tmp_path):
    old = plain(tmp_path, "a")
    partial = tmp_path / "child/v1.partial"
    partial.mkdir(parents=True)
    recipe = {"resumable": True, **asdict(Origin("child", "child", 1, {}, {"plain": old.content}))}
    (partial / "recipe.json").write_text(json.dumps(sealed(recipe)))
    del old
    plain(tmp_path, "b")
    assert names(collect([tmp_path], 1, delete=True)) == []


def test_damaged_versions_are_left_alone(tmp_path):
    for text in "abc":
        plain(tmp_path, text)
    (tmp_path / "plain/v1/text.txt").unlink()
    value = collect([tmp_path], 1, delete=True)
    assert names(value) == ["v2"]
    assert {version.path.name: why for version, why in value.kept.items()} == {"v1": "damaged", "v3": "newest"}


def test_an_open_version_is_kept_until_its_reader_lets_it_go(tmp_path):
    reader = plain(tmp_path, "a")
    plain(tmp_path, "b")
    value = collect([tmp_path], 1, delete=True)
    assert names(value) == [] and list(value.kept.values()) == ["in use", "newest"]
    copied = pickle.loads(pickle.dumps(reader))  # as to a worker: the sender holds the lease
    assert copied == reader
    del reader
    assert names(collect([tmp_path], 1, delete=True)) == ["v1"]


OPENED = "import sys; from realmctl.artifacts import open_artifact; a = open_artifact(sys.argv[1]); print(a, flush=True); sys.stdin.read()"


def test_a_killed_reader_keeps_nothing(tmp_path):
    plain(tmp_path, "a"), plain(tmp_path, "b")
    command = [sys.executable, "-c", OPENED, str(tmp_path / "plain/v1")]
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert reader.stdout.readline().startswith("plain")
    assert names(collect([tmp_path], 1, delete=True)) == []
    reader.kill()
    reader.communicate()
    assert names(collect([tmp_path], 1, delete=True)) == ["v1"]


def test_a_run_that_finishes_while_versions_are_locked_keeps_its_input(tmp_path, monkeypatch):
    """It had opened v1, ended before the lock, and its child is seen only when the workspace is read again."""
    old = plain(tmp_path, "a")
    plain(tmp_path, "b")
    child = Child(plain=old).make(tmp_path / "elsewhere")
    hidden = child.path
    del old, child
    plain_locked = gc_module._locked

    def locked(*arguments):
        found = plain_locked(*arguments)
        hidden.parent.rename(tmp_path / "child")
        return found

    hidden.parent.rename(tmp_path.parent / "hidden")
    hidden = tmp_path.parent / "hidden/v1"
    monkeypatch.setattr(gc_module, "_locked", locked)
    assert names(collect([tmp_path], 1, delete=True)) == []
    assert numbers(tmp_path / "plain") == ["v1", "v2"]


def test_a_version_that_is_being_deleted_cannot_be_opened(tmp_path, monkeypatch):
    plain(tmp_path, "a")
    monkeypatch.setattr(lease, "PATIENCE_SECONDS", 0.05)
    handle = lease.try_exclusive(tmp_path / "plain/v1/manifest.json")
    with pytest.raises(InputError, match="plain/v1"):
        open_artifact(tmp_path / "plain/v1")
    lease.os.close(handle)
    assert open_artifact(tmp_path / "plain/v1").kind == "plain"


def test_a_version_that_is_deleted_while_it_is_opened_is_refused(tmp_path, monkeypatch):
    """`gc` moves it out of the series after its manifest was read, and before its files are listed."""
    version = plain(tmp_path, "a").path

    def deleted_after(folder):
        manifest = read_manifest(folder)
        folder.rename(tmp_path / "gone")
        return manifest

    monkeypatch.setattr(artifact_module, "read_manifest", deleted_after)
    with pytest.raises(InputError, match="plain/v1"):
        open_artifact(version)


def test_what_a_killed_gc_left_is_deleted(tmp_path):
    plain(tmp_path, "a"), plain(tmp_path, "b")
    (tmp_path / "plain/v1").rename(tmp_path / "plain/v1.deleted")
    collect([tmp_path], 1, delete=False)
    assert (tmp_path / "plain/v1.deleted").is_dir()
    collect([tmp_path], 1, delete=True)
    assert numbers(tmp_path / "plain") == ["v2"]


def test_what_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="--keep 0"):
        collect([tmp_path], 0, delete=True)
    with pytest.raises(InputError, match="does not exist"):
        collect([tmp_path / "none"], 1, delete=False)


def _read_for(seconds: float, series: str, told: multiprocessing.Queue) -> None:
    """Open old and new versions; every one that opens must be whole for as long as it is held."""
    end, opened, refused = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        for path in sorted(Path(series).glob("v*[0-9]")):
            try:
                artifact = open_artifact(path)
            except InputError:
                refused += 1
                continue
            verify(artifact)
            opened += 1
    told.put((opened, refused))


def _race(tmp_path: Path, seconds: float, readers: int) -> tuple[int, int]:
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    (tmp_path / "plain").mkdir()
    processes = [
        context.Process(target=_read_for, args=(seconds, str(tmp_path / "plain"), told)) for _ in range(readers)
    ]
    for process in processes:
        process.start()
    deleted, made = 0, 0
    while any(process.is_alive() for process in processes) and told.qsize() < readers:
        plain(tmp_path, str(made))
        made += 1
        deleted += len(collect([tmp_path], 2, delete=True).gone)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return sum(told.get()[0] for _ in processes), deleted


@pytest.mark.slow
def test_readers_beside_gc_see_whole_versions_or_none(tmp_path):
    opened, deleted = _race(tmp_path, 60.0, 4)
    print(f"{opened} opened and verified, {deleted} deleted")
    assert opened > 1000 and deleted > 50
    count("versions opened and verified beside gc", opened, deleted=deleted)
