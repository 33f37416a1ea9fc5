"""Commits on a disk that fails, lies or loses power: no error is swallowed, and nothing that failed is visible."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
import torch

from realmctl.artifacts import disk, open_artifact, series, verify, version_numbers
from realmctl.artifacts.arrays import ArrayAppender
from realmctl.artifacts.disk import copy_file
from realmctl.artifacts.records import RecordWriter
from realmctl.artifacts.temporary import temporary_folder
from realmctl.errors import ConfigError, InputError, MismatchError, ResourceError
from realmctl.extras.hnsw import hnsw
from realmctl.index.build import build
from realmctl.index.settings import IndexSettings
from realmctl.models import weights
from realmctl.retrieval.embedding import embedding_file
from tests.faults.counting import count, sampled
from tests.faults.tampering import overwrite
from tests.fixtures.faults import faults, losing_writes, recorded_calls
from tests.fixtures.small_stages import Child, Model, Plain, Steps

LOST = {
    "all": lambda data: b"",
    "the last byte": lambda data: data[:-1],
    "one bit": lambda data: bytes([data[0] ^ 1]) + data[1:] if data else data,
}


def broken(number: int = errno.EIO) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_run_that_failed_at_any_call_published_nothing(tmp_path, number):
    out, k = tmp_path / "plain", 0
    while True:
        made = None
        with faults(k, lambda: broken(number), lasting=False) as injected:
            try:
                made = Plain().make(out)
            except ResourceError as error:
                assert error.exit_code == 5 and "\n" not in str(error)
        assert version_numbers(out) == ([1] if made else [])
        again = Plain().make(out)
        assert (again.path.name, verify(again) > 0) == ("v1", True)
        if not injected.struck:
            break
        shutil.rmtree(out)
        k += 1
    assert k > 30
    count("EIO and ENOSPC at every store call (one small stage)", k)


def test_when_the_last_fsync_fails_the_version_is_not_visible_and_the_next_run_commits_it(tmp_path, monkeypatch):
    fsync, out = os.fsync, tmp_path / "plain"

    def fails(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink() == out and (out / "v1").exists():
            raise broken()
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(ResourceError):
        Plain().make(out)
    assert not (out / "v1").exists() and (out / "v1.partial").is_dir()
    monkeypatch.setattr(os, "fsync", fsync)
    assert Plain().make(out).path.name == "v1"


def missing_flushes(log: list[tuple[str, Path]], version: Path, below: Path) -> set[Path]:
    """The new names, up to the version, whose folder was not flushed before the work was reported as done."""
    new = {path: at for at, (name, path) in enumerate(log) if name in ("mkdir", "rename")}
    named = {path: at for path, at in new.items() if version.is_relative_to(path) and path.is_relative_to(below)}
    flushed = {path: at for at, (name, path) in enumerate(log) if name == "fsync"}
    return {path for path, at in named.items() if flushed.get(path.parent, -1) < at}


def test_a_first_version_cannot_vanish_in_a_power_cut(tmp_path, monkeypatch):
    out = tmp_path / "new" / "deep" / "plain"
    with recorded_calls() as log:
        version = Plain().make(out).path
    assert {path for name, path in log if name == "mkdir"} >= {out, out.parent, out.parent.parent}
    assert missing_flushes(log, version, tmp_path) == set()
    monkeypatch.setattr(series, "make_folders", lambda path: path.mkdir(parents=True, exist_ok=True))
    with recorded_calls() as log:
        version = Plain().make(tmp_path / "other" / "plain").path
    assert missing_flushes(log, version, tmp_path) == {tmp_path / "other", tmp_path / "other" / "plain"}


@pytest.mark.parametrize("keep", LOST.values(), ids=LOST)
def test_a_manifest_that_the_disk_lost_is_not_published(tmp_path, keep):
    with losing_writes("manifest.json.writing", keep), pytest.raises(ResourceError, match="manifest"):
        Plain().make(tmp_path / "plain")
    assert version_numbers(tmp_path / "plain") == []
    assert Plain().make(tmp_path / "plain").path.name == "v1"


@pytest.mark.parametrize("keep", LOST.values(), ids=LOST)
def test_records_arrays_and_copies_that_the_disk_lost_are_noticed(tmp_path, keep):
    def records() -> None:
        with RecordWriter(tmp_path / "x") as writer:
            writer.write({"text": "x"})

    def array() -> None:
        appender = ArrayAppender(tmp_path / "x", "uint8")
        appender.append([1, 2, 3])
        appender.close()

    def copy() -> None:
        (tmp_path / "source").write_bytes(b"source")
        copy_file(tmp_path / "source", tmp_path / "x")

    for write in (records, array, copy):
        write()
        with losing_writes("x", keep), pytest.raises(OSError) as error:
            write()
        assert error.value.errno == errno.EIO
    with losing_writes("x.frames.json.writing", keep), pytest.raises(OSError):
        records()


@pytest.mark.parametrize("keep", [lambda data: data[:-1], lambda data: data[:-1] + bytes([data[-1] ^ 1])])
def test_weights_that_the_disk_lost_are_noticed(tmp_path, monkeypatch, keep):
    """safetensors writes them itself, so the file is changed behind its back."""
    plain = weights.save_file

    def loses(tensors, path, metadata) -> None:
        plain(tensors, path, metadata)
        path.write_bytes(keep(path.read_bytes()))

    monkeypatch.setattr(weights, "save_file", loses)
    with pytest.raises(OSError) as error:
        weights.save_tensors({"a": torch.tensor([1.0, 2.0])}, tmp_path / "x.safetensors")
    assert error.value.errno == errno.EIO


@pytest.mark.parametrize("which", ["header", "rows"])
def test_embeddings_that_the_disk_lost_are_noticed(tmp_path, monkeypatch, which):
    plain, header = os.pwrite, len(embedding_file.npy_header(np.dtype("float32"), (4, 2)))

    def loses(handle, data, at) -> int:
        lost = (at < header) == (which == "header")
        return len(data) if lost else plain(handle, data, at)

    monkeypatch.setattr(os, "pwrite", loses)
    file = embedding_file.EmbeddingFile(tmp_path / "e.npy", tmp_path / "done.jsonl", 4, 2, "float32")
    with pytest.raises(OSError) as error, file:
        file.write(0, np.ones((4, 2), np.float32))
    assert error.value.errno == errno.EIO


def test_a_graph_that_the_disk_lost_is_noticed(tmp_path, monkeypatch):
    """hnswlib writes it itself and reports no error. Every page holds vectors, which are compared."""
    rng, folder = np.random.default_rng(0), tmp_path
    np.save(folder / "vectors.npy", rng.standard_normal((300, 16), dtype=np.float32))
    plain = hnsw.read_entry

    def loses(path):
        data = bytearray(path.read_bytes())
        data[4096:8192] = bytes(4096)
        path.write_bytes(data)
        return plain(path)

    monkeypatch.setattr(hnsw, "read_entry", loses)
    with pytest.raises(InputError, match="is damaged"):
        build(folder, IndexSettings(type="hnsw"))
    assert not (folder / "index.json").exists()


def test_a_rotten_version_is_not_taken_for_done(tmp_path, capsys):
    made = Plain(text="hello").make(tmp_path / "plain")
    overwrite(made.file("text.txt"), b"jello")
    again = Plain(text="hello").make(tmp_path / "plain")
    assert again.path.name == "v2" and "text.txt is damaged" in capsys.readouterr().err
    assert Plain(text="hello").make(tmp_path / "plain").path == again.path


def test_a_rotten_part_is_not_taken_for_done(tmp_path):
    child = Child(plain=Plain().make(tmp_path / "plain")).make(tmp_path / "child")
    model = Model(child=child).make(tmp_path / "model")
    (model.path / "plain" / "text.txt").unlink()
    with pytest.raises(InputError, match=r"text\.txt"):
        open_artifact(model.path)
    assert Model(child=child).make(tmp_path / "model").path.name == "v2"


def test_a_rotten_input_stops_the_stage_that_reads_it(tmp_path):
    made = Plain(text="hello").make(tmp_path / "plain")
    child = Child(plain=made)
    overwrite(made.file("text.txt"), b"jello")
    with pytest.raises(InputError, match=r"text\.txt"):
        child.make(tmp_path / "child")
    assert version_numbers(tmp_path / "child") == []


def test_a_large_version_is_not_hashed_again_for_nothing(tmp_path, monkeypatch):
    made = Plain(text="hello").make(tmp_path / "plain")
    monkeypatch.setattr(series, "FOUND_BYTES", 3)
    monkeypatch.setattr(series, "verify", lambda artifact: pytest.fail("hashed"))
    assert Plain(text="hello").make(tmp_path / "plain").path == made.path


def test_the_number_of_a_deleted_version_is_not_given_again(tmp_path):
    out = tmp_path / "plain"
    for text in "ab":
        Plain(text=text).make(out)
    shutil.rmtree(out / "v2")
    assert Plain(text="c").make(out).path.name == "v3"
    shutil.rmtree(out / "v3")
    shutil.rmtree(out / "v1")
    assert Plain(text="d").make(out).path.name == "v4"


@pytest.mark.parametrize("text", [None, "", "-7", "x", "1e3", "9" * 15, "9" * 5000, "\xff", "²"])
def test_a_missing_or_damaged_record_of_the_last_number_does_no_harm(tmp_path, text):
    out = tmp_path / "plain"
    Plain(text="a").make(out)
    (out / ".last").unlink()
    if text is not None:
        (out / ".last").write_text(text)
    assert Plain(text="b").make(out).path.name == "v2"
    assert (out / ".last").read_text() == "2\n"


def test_numbers_end(tmp_path):
    (tmp_path / "plain" / "v999999999").mkdir(parents=True)
    with pytest.raises(InputError, match="the last number"):
        Plain().make(tmp_path / "plain")


def test_a_finished_run_whose_number_is_taken_is_refused(tmp_path):
    made = Plain(text="a").make(tmp_path / "plain").path
    shutil.copytree(made, made.with_name("v1.partial"))
    with pytest.raises(InputError, match="exists already"):
        Plain(text="b").make(tmp_path / "plain")
    assert verify(open_artifact(made))


@pytest.mark.parametrize("text", ["[]", "7", "null", '{"recipe": 1}', "[" * 50_000, '{"resumable": true}', "\xff"])
def test_an_unfinished_run_whose_recipe_is_damaged_is_set_aside_and_started_again(tmp_path, text, capsys):
    with pytest.raises(RuntimeError):
        Steps(stop_before=2).make(tmp_path / "steps")
    (tmp_path / "steps" / "v1.partial" / "recipe.json").write_text(text, encoding="latin-1")
    made = Steps().make(tmp_path / "steps")
    assert (made.metrics["taken"], made.path.name) == (4, "v1")
    assert sorted(path.name for path in saved_steps(tmp_path / "steps")) == ["0", "1"]
    assert "recipe.json is missing or damaged" in capsys.readouterr().err


def saved_steps(series: Path) -> list[Path]:
    """The files of the set-aside run of `Steps`."""
    return [*(series / "quarantine" / "v1.partial-1" / ".scratch" / "done").iterdir()]


def test_no_flipped_bit_of_a_recipe_deletes_the_unfinished_run(tmp_path):
    with pytest.raises(RuntimeError):
        Steps(stop_before=2).make(tmp_path / "unfinished")
    whole = (tmp_path / "unfinished" / "v1.partial" / "recipe.json").read_bytes()
    for place in sampled(range(len(whole)), 4):
        series = tmp_path / f"flip-{place}"
        shutil.copytree(tmp_path / "unfinished", series)
        flipped = whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        (series / "v1.partial" / "recipe.json").write_bytes(flipped)
        try:
            made = Steps().make(series)
        except MismatchError:
            assert (series / "v1.partial" / ".scratch" / "done" / "1").is_file(), place
            continue
        assert made.metrics["taken"] == 2 or len(saved_steps(series)) == 2, place


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize("out", ["/proc/x", "/proc/x/y", "/proc/self/x"])
def test_an_output_in_proc_is_one_clear_error(small, out):
    code, _, error = small("plain", "--out", out)
    assert code == 2 and error.count("\n") == 1 and f"{out} cannot be made" in error and "--out" in error
    with pytest.raises(ConfigError):
        Plain().make(out)


def test_a_device_that_fails_while_reading_is_a_resource_error(tmp_path, monkeypatch, small):
    made = Plain().make(tmp_path / "plain")

    def fails(path: Path, limit: int) -> bytes:
        raise broken()

    monkeypatch.setattr("realmctl.artifacts.manifest.read_small", fails)
    code, _, error = small("verify", made.path)
    assert code == 5 and "manifest.json: Input/output error. The disk" in error


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ENOTCONN])
def test_a_recipe_or_a_last_number_that_the_disk_does_not_give_back_is_not_damaged(tmp_path, monkeypatch, number):
    """An unfinished run would be set aside, and a number would be given twice."""
    out = tmp_path / "steps"
    with pytest.raises(RuntimeError):
        Steps(stop_before=2).make(out)
    before = sorted(path.relative_to(out) for path in out.rglob("*"))
    plain = disk.open_regular

    class Failing(io.BytesIO):
        def read(self, size=-1):
            raise broken(number)

    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / ".last").write_text("7\n")
    for stage, where, name in ((Steps(), out, "recipe.json"), (Plain(), tmp_path / "plain", ".last")):
        monkeypatch.setattr(
            disk, "open_regular", lambda path, name=name: Failing() if path.name == name else plain(path)
        )
        with pytest.raises(ResourceError, match=os.strerror(number)):
            stage.make(where)
    assert sorted(path.relative_to(out) for path in out.rglob("*")) == before
    monkeypatch.setattr(disk, "open_regular", plain)
    assert Steps().make(out).metrics["taken"] == 2
    assert Plain().make(tmp_path / "plain").path.name == "v8"


def flush_as(monkeypatch, number: int, of_folders: bool) -> None:
    """Have fsync fail for folders, or for files."""
    plain = os.fsync

    def fsync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode) == of_folders:
            raise broken(number)
        plain(handle)

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_file_system_that_cannot_flush_folders_can_be_written_to(tmp_path, monkeypatch):
    """As some of FUSE: EINVAL says that there is nothing to flush. Any other error, and any of a file, is a failed write."""
    for number, of_folders in ((errno.EIO, True), (errno.EINVAL, False)):
        with monkeypatch.context() as patch, pytest.raises(ResourceError if of_folders else OSError):
            flush_as(patch, number, of_folders)
            Plain().make(tmp_path / "plain")
        assert version_numbers(tmp_path / "plain") == []
    flush_as(monkeypatch, errno.EINVAL, of_folders=True)
    assert verify(Plain().make(tmp_path / "plain")) > 0


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told_and_can_be_written_to(tmp_path, monkeypatch, capsys, number):
    def flock(handle: int, how: int) -> None:
        raise broken(number)

    monkeypatch.setattr("fcntl.flock", flock)
    made = Plain().make(tmp_path / "plain")
    assert verify(made) > 0 and "start no second run" in capsys.readouterr().err
    for base in (None, tmp_path):
        with temporary_folder(base) as folder, temporary_folder(base) as other:
            assert folder.is_dir() and other.is_dir()
        assert not folder.exists() and not other.exists()


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ENOMEM])
def test_a_lock_that_cannot_be_had_is_no_reason_to_go_without(tmp_path, monkeypatch, number):
    def flock(handle: int, how: int) -> None:
        raise broken(number)

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(ResourceError):
        Plain().make(tmp_path / "plain")
    assert version_numbers(tmp_path / "plain") == []
