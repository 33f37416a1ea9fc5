"""`realmctl gc` on artifacts: what it keeps, and what readers and writers see beside it."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact, lease, open_artifact, verify
from realmctl.artifacts import artifact as artifact_module
from realmctl.artifacts import disk as disk_module
from realmctl.artifacts.catalogue import listing
from realmctl.artifacts.manifest import Origin, read_manifest, sealed
from realmctl.artifacts.series import pin
from realmctl.errors import ConfigError, InputError, ResourceError
from realmctl.extras.gc import collecting as gc_module
from realmctl.extras.gc.collecting import Collected, collect
from realmctl.extras.gc.command import Gc
from realmctl.pipeline import Stage, reads, setting
from tests.faults.counting import count
from tests.fixtures.small_stages import Child, Model, Plain


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder beside which no other test leaves artifacts, which `gc` would read."""
    folder = tmp_path / "own"
    folder.mkdir()
    return folder


def plain(folder: Path, text: str):
    return Plain(text=text).make(folder / "plain")


def numbers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


class Edited(Stage):
    """Makes a plain artifact of one before."""

    makes = "plain"
    before: Artifact = reads("plain", help="What is edited.")
    number: int = setting("Of the edit.", default=0)

    def run(self, out):
        out.file("text.txt").write_text(f"{self.number}")
        return {}


def edited(folder: Path, before: Artifact, number: int) -> Artifact:
    return Edited(before=before, number=number).make(folder / "plain")


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


def test_runs_that_gave_way_are_listed_and_deleted(tmp_path, capsys):
    """What lies in quarantine without a readable recipe stays: it may be of someone else."""
    made = plain(tmp_path, "a")
    aside = tmp_path / "plain" / "quarantine"
    run, other, linked = aside / "v2.partial-1", aside / "v3.partial-1", aside / "v4.partial-1"
    (run / ".scratch").mkdir(parents=True)
    recipe = {"resumable": True, **asdict(Origin("plain", "plain", 1, {}, {}))}
    (run / "recipe.json").write_text(json.dumps(sealed(recipe)))
    (run / ".scratch" / "step").write_bytes(b"12345")
    other.mkdir()
    (other / "notes.txt").write_text("of someone else")
    linked.symlink_to(run)
    listed = collect([tmp_path, tmp_path / "plain"], 1, delete=False)
    assert [one.path for one in listed.aside] == [run] and listed.gone == [] and run.exists()
    assert listed.json()["set_aside"] == [{"path": str(run), "bytes": listed.bytes}] and listed.bytes > 5
    Gc(folders=(tmp_path,)).run(lambda found, text: print(text(found)))
    assert "0 versions and 1 unfinished run set aside" in capsys.readouterr().out
    assert [one.path for one in collect([tmp_path], 1, delete=True).aside] == [run]
    assert sorted(path.name for path in aside.iterdir()) == ["v3.partial-1", "v4.partial-1"] and made.path.exists()
    linked.unlink()
    shutil.rmtree(other)
    assert collect([tmp_path], 1, delete=True).aside == []


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


def test_a_version_that_is_deleted_before_it_is_locked_is_refused(tmp_path, monkeypatch):
    version, flock = plain(tmp_path, "a").path, lease.lock_file

    def deleted_before(handle, shared=False):
        version.rename(tmp_path / "gone")
        flock(handle, shared)

    monkeypatch.setattr(lease, "lock_file", deleted_before)
    with pytest.raises(InputError, match="plain/v1"):
        lease.lease(version / "manifest.json")


def test_a_second_gc_takes_the_first_ones_folder_for_one_that_a_kill_left(tmp_path, monkeypatch):
    plain(tmp_path, "a"), plain(tmp_path, "b")
    unlink, second = os.unlink, list[Collected]()

    def unlinked(path, **options):
        if not second:
            second.append(Collected(True, [], [], {}, {}))
            second[0] = collect([tmp_path], 1, delete=True)
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", unlinked)
    first = collect([tmp_path], 1, delete=True)
    assert [version.path.name for version in first.gone] == ["v1"] and not second[0].gone
    assert numbers(tmp_path / "plain") == ["v2"] and not (tmp_path / "plain/.v1.deleted").exists()


def test_what_a_killed_gc_left_is_deleted(tmp_path):
    plain(tmp_path, "a"), plain(tmp_path, "b")
    trash = (tmp_path / "plain/v1").rename(tmp_path / "plain/.v1.deleted")
    theirs = [tmp_path / "plain" / name for name in ("vacation.deleted", "v1.deleted", ".notes.deleted")]
    for folder in theirs:
        folder.mkdir()
    collect([tmp_path], 1, delete=False)
    assert trash.is_dir()
    collect([tmp_path], 1, delete=True)
    assert not trash.exists() and all(folder.is_dir() for folder in theirs)


@pytest.mark.parametrize("place", ["child", "a/b/child"])
@pytest.mark.parametrize("link", [False, True])
def test_a_series_counts_wherever_it_lies(tmp_path, place, link):
    """In the workspace, in a folder of it, and where a link leads, what it needs is kept."""
    workspace, series = tmp_path / "w", (tmp_path / "elsewhere" if link else tmp_path / "w" / place)
    Child(plain=plain(workspace, "a")).make(series)
    plain(workspace, "b")
    if link:
        (workspace / place).parent.mkdir(parents=True, exist_ok=True)
        (workspace / place).symlink_to(series)
    assert {version.path for version in listing(workspace)} == {
        workspace / name for name in ("plain/v1", "plain/v2", f"{place}/v1")
    }
    assert names(collect([workspace], 1, delete=True)) == []


def test_what_a_link_leads_to_is_not_deleted(tmp_path):
    """Another workspace may use it. Who names the place itself deletes there."""
    for text in "ab":
        plain(tmp_path / "shared", text)
    for workspace in ("w1", "w2"):
        (tmp_path / workspace).mkdir()
        (tmp_path / workspace / "plain").symlink_to(tmp_path / "shared/plain")
    found = collect([tmp_path / "w1"], 1, delete=True)
    assert names(found) == [] and sorted(found.kept.values()) == ["newest", "reached by a link"]
    assert names(collect([tmp_path / "w1/plain"], 1, delete=False)) == ["v1"]
    assert names(collect([tmp_path / "w1", tmp_path / "shared"], 1, delete=True)) == ["v1"]


def test_two_names_of_a_series_are_one(tmp_path):
    for text in "ab":
        plain(tmp_path, text)
    (tmp_path / "alias").symlink_to("plain")
    assert names(collect([tmp_path], 1, delete=True)) == ["v1"]
    assert numbers(tmp_path / "plain") == ["v2"]


def test_what_a_damaged_version_needs_is_kept(tmp_path):
    """Its file may be restored. Where the manifest is gone, nobody knows what it needs, so nothing is deleted."""
    version = Child(plain=plain(tmp_path, "a")).make(tmp_path / "child").path
    for text in "bc":
        plain(tmp_path, text)
    (version / "text.txt").unlink()
    assert names(collect([tmp_path], 1, delete=False)) == ["v2"]
    (version / "manifest.json").rename(tmp_path / "manifest.json")
    with pytest.raises(InputError, match=r"child/v1"):
        collect([tmp_path], 1, delete=True)
    assert numbers(tmp_path / "plain") == ["v1", "v2", "v3"]


def test_what_is_not_about_an_artifact_is_no_damage(tmp_path, monkeypatch):
    plain(tmp_path, "a")
    monkeypatch.setenv("REALMCTL_VERIFY", "FULL")
    for look in (listing, lambda folder: collect([folder], 1, delete=False), lambda folder: plain(folder, "b")):
        with pytest.raises(ConfigError, match="REALMCTL_VERIFY"):
            look(tmp_path)
    monkeypatch.undo()

    def no_handles(*arguments, **keywords):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(disk_module.os, "open", no_handles)
    for look in (listing, lambda folder: collect([folder], 1, delete=False)):
        with pytest.raises(ResourceError):
            look(tmp_path)


def test_what_replaced_its_ancestor_does_not_need_it(tmp_path):
    """Twenty edits, each of the blocks before it, and an index of the last ones: only the last blocks are needed."""
    made = None
    for number in range(5):
        made = Plain(text="base").make(tmp_path / "plain") if number == 0 else edited(tmp_path, made, number)
    model = Child(plain=made).make(tmp_path / "child")
    del made
    assert [version.path.name for version in collect([tmp_path], 1, delete=True).gone] == ["v1", "v2", "v3", "v4"]
    verify(model)


@pytest.mark.parametrize(
    ("used", "user", "named", "workspace"),
    [
        ("w", "w/child", "w/plain", None),  # beside a series
        ("w", "w/a/b/child", "w/plain", None),  # deeper in the same workspace
        ("w", "child", "w", None),  # a series beside a workspace
        ("w/a", "w/child", "w/a/plain", "w"),  # in the workspace of the command
        ("elsewhere", "w/child", "elsewhere", "w"),
    ],
)
@pytest.mark.parametrize("link", [False, True])
def test_what_is_needed_by_an_artifact_near_the_named_folder_is_kept(tmp_path, used, user, named, workspace, link):
    user_path = Child(plain=plain(tmp_path / used, "a")).make(tmp_path / user).path
    for text in "bc":
        plain(tmp_path / used, text)
    if link:
        (tmp_path / "links").mkdir()
        folder = tmp_path / "links/named"
        folder.symlink_to(tmp_path / named)
    else:
        folder = tmp_path / named
    found = collect([folder], 1, delete=True, workspace=tmp_path / workspace if workspace else None)
    assert names(found) == ["v2"]
    assert {one.path.name: why for one, why in found.kept.items()} == {"v1": "needed", "v3": "newest"}
    assert [list(users) for users in found.needed_by.values()] == [[user_path]]
    assert verify(open_artifact(user_path)) and numbers(tmp_path / used / "plain") == ["v1", "v3"]


def test_nothing_is_deleted_near_the_named_folder(tmp_path):
    """Not even what nothing needs; so what that needs stays too."""
    first = Child(plain=plain(tmp_path, "a")).make(tmp_path / "child")
    Child(plain=plain(tmp_path, "b")).make(tmp_path / "child")
    trash = tmp_path / "child/.v9.deleted"
    trash.mkdir()
    plain(tmp_path, "c")
    assert first and names(collect([tmp_path / "plain"], 1, delete=True)) == [] and trash.is_dir()
    first = None
    assert names(collect([tmp_path], 1, delete=True)) == ["v1", "v1"] and not trash.exists()


def test_an_unfinished_run_is_named_that_needs_a_version(tmp_path):
    partial = tmp_path / "child/v1.partial"
    partial.mkdir(parents=True)
    recipe = {"resumable": True, **asdict(Origin("child", "child", 1, {}, {"plain": plain(tmp_path, "a").content}))}
    (partial / "recipe.json").write_text(json.dumps(sealed(recipe)))
    plain(tmp_path, "b")
    found = collect([tmp_path / "plain"], 1, delete=True)
    assert names(found) == [] and [list(users) for users in found.needed_by.values()] == [[partial]]


def test_what_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="--keep 0"):
        collect([tmp_path], 0, delete=True)
    with pytest.raises(InputError, match="does not exist"):
        collect([tmp_path / "none"], 1, delete=False)
    for place in (version := plain(tmp_path, "a").path, version / "manifest.json"):
        for look in (listing, lambda folder: collect([folder], 1, delete=False)):
            with pytest.raises(InputError, match=f"realmctl show {place}$"):
                look(place)


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


def test_what_is_pinned_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in ("one", "three", "fifteen"):
        Plain(text=text).make("artifacts/plain")
    pin(open_artifact("artifacts/plain/v1"))
    found = collect([Path("artifacts")], 1, True)
    assert [version.path.name for version in found.gone] == ["v2"]
    assert {version.path.name: why for version, why in found.kept.items()} == {"v1": "pinned", "v3": "newest"}
