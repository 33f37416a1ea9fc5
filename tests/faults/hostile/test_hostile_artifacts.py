"""Artifacts that an attacker made: each is refused with one paragraph, at once, and nothing outside the output changes."""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from realmctl.artifacts import MANIFEST, Artifact, Origin, Writer, open_artifact, verify, writing
from realmctl.artifacts.hashing import digest_file
from realmctl.artifacts.manifest import FileEntry
from realmctl.errors import InputError, MismatchError
from stages.embed import Embed
from tests.faults.tampering import edit_manifest, overwrite
from tests.fixtures.chain import finetune, pretrain
from tests.fixtures.small_stages import Plain

HASH = "0" * 64
ORIGIN = Origin("notes", "notes", 1, {}, {})
NAMES = [
    "../evil",
    "a/../../evil",
    "/etc/evil",
    "",
    ".",
    "..",
    "a//b",
    "./a",
    "a/",
    "a\\b",
    "a\0b",
    "a\nb",
    "\x1b[2J",
    "x" * 256,
    "a/" * 17 + "a",
    "\ud800",
]


@pytest.fixture
def plain(tmp_path) -> Path:
    return Plain().make(tmp_path / "plain").path


@pytest.mark.parametrize("hashes", [False, True])
def test_a_part_outside_the_artifact_is_refused_and_nothing_is_overwritten(chain, tmp_path, hashes):
    theirs, ours = tmp_path / "downloaded", tmp_path / "w"
    model = pretrain(chain, steps=1).make(theirs / "model").path
    with writing(theirs / "evil", ORIGIN) as out:
        out.file("notes.txt").write_text("the attacker's")
    evil = open_artifact(theirs / "evil").content
    (ours / "evil").mkdir(parents=True)
    (ours / "evil" / "notes.txt").write_text("the user's")

    def add_part(manifest: dict[str, Any]) -> None:
        manifest["parts"]["../../../evil"] = evil

    index = edit_manifest(model / "index", add_part, hashes=hashes)
    edit_manifest(model, lambda manifest: manifest["parts"].update(index=index["content"]), hashes=hashes)
    with pytest.raises(InputError, match=r"'\.\./\.\./\.\./evil'"):
        finetune(chain, model, steps=1).make(ours / "qa-model")  # type: ignore[arg-type]
    assert (ours / "evil" / "notes.txt").read_text() == "the user's"
    with pytest.raises(InputError, match="evil"):
        verify(open_artifact(model / "index"))


def test_changed_blocks_with_a_new_file_hash_and_seal_are_refused(chain, tmp_path):
    blocks = Path(shutil.copytree(chain.blocks.path, tmp_path / "blocks"))
    tokens = (blocks / "tokens.npy").read_bytes()
    overwrite(blocks / "tokens.npy", tokens[:-1] + bytes([tokens[-1] ^ 1]))
    sha256 = digest_file(blocks / "tokens.npy")
    edit_manifest(blocks, lambda manifest: manifest["files"]["tokens.npy"].update(sha256=sha256))
    with pytest.raises(InputError, match="content"):
        Embed(blocks=blocks, retriever=chain.retriever)  # type: ignore[arg-type]
    edit_manifest(blocks, lambda manifest: None, hashes=True)
    with pytest.raises(MismatchError, match="does not belong to"):
        pretrain(dataclasses.replace(chain, blocks=open_artifact(blocks)), steps=1).make(tmp_path / "model")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["files", "parts"])
def test_a_name_that_is_not_safe_is_refused(plain, name, field):
    value = {"bytes": 0, "sha256": HASH} if field == "files" else HASH
    edit_manifest(plain, lambda manifest: manifest[field].update({name: value}), hashes=True)
    with pytest.raises(InputError, match="not safe"):
        open_artifact(plain)


@pytest.mark.parametrize("name", NAMES)
def test_a_writer_refuses_a_name_that_is_not_safe(plain, tmp_path, name):
    writer, made = Writer(tmp_path / "out", ORIGIN), open_artifact(plain)
    with pytest.raises(InputError):
        writer.file(name)
    with pytest.raises(InputError):
        writer.link(name, made.file("text.txt"))
    with pytest.raises(InputError):
        writer.adopt(name, made)
    with pytest.raises(InputError):
        writer.scratch(name)
    crafted = Artifact(made.path, dataclasses.replace(made.manifest, files={name: FileEntry(1, HASH)}))
    with pytest.raises(InputError):
        writer.adopt("part", crafted)
    if name not in (".", ""):
        with pytest.raises(InputError):
            writer.copy_folder(name, made.path)
    assert {path.name for path in tmp_path.rglob("*")} == {
        path.name for path in (plain.parent, *plain.parent.rglob("*"))
    }


def test_a_writer_does_not_follow_a_link_out_of_its_folder(plain, tmp_path):
    outside, out = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    out.mkdir()
    for name in ("deep", ".scratch", "part"):
        (out / name).symlink_to(outside)
    writer = Writer(out, ORIGIN)
    for write in (
        lambda: writer.file("deep/er/file"),
        lambda: writer.scratch("checkpoints"),
        lambda: writer.adopt("part", open_artifact(plain)),
        lambda: writer.copy_folder("deep", plain),
    ):
        with pytest.raises(InputError, match="is a symbolic link"):
            write()
    assert not list(outside.iterdir())


@pytest.mark.parametrize("name", ["manifest.json", "recipe.json", "live", ".scratch/x", "manifest.json.writing"])
def test_a_writer_refuses_the_names_of_realmctl(tmp_path, name):
    with pytest.raises(InputError, match="uses itself"):
        Writer(tmp_path, ORIGIN).file(name)


def put_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def put_link(path: Path) -> None:
    path.symlink_to(path.with_name("corpus.txt"))


def put_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(path))


@pytest.mark.parametrize("put", [put_pipe, put_device, put_link, put_socket, Path.mkdir])
@pytest.mark.parametrize("name", ["text.txt", "foreign", MANIFEST, "deep/er/copy.bin"])
def test_what_is_no_regular_file_is_refused_at_once(small, plain, put, name):
    size = 0 if put is put_pipe else 4096
    edit_manifest(plain, lambda manifest: manifest["files"]["text.txt"].update(bytes=size), hashes=True)
    (plain / name).unlink(missing_ok=True)
    put(plain / name)
    for command in ("verify", "show"):
        code, _, error = small(command, plain)
        assert code == 3 and error.count("\n") == 1
    code, out, _ = small("ls", plain.parent)
    assert code == 0 and "damaged" in out


def test_a_folder_with_a_pipe_or_device_for_a_manifest_holds_a_series(tmp_path):
    for number, put in enumerate((put_pipe, put_device)):
        (tmp_path / str(number)).mkdir()
        put(tmp_path / str(number) / MANIFEST)
        assert Plain().make(tmp_path / str(number) / "plain").path.name == "v1"


def test_a_lock_that_is_a_link_is_refused_and_its_target_stays(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".lock").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match=r"\.lock"):
        Plain().make(tmp_path / "out")
    assert (tmp_path / "mine").read_text() == "mine"


def test_an_unfinished_run_that_is_a_link_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "v7.partial").symlink_to(tmp_path / "mine")
    assert Plain().make(tmp_path / "out").path.name == "v8"  # beside it, not on its number
    assert (tmp_path / "mine" / "file").exists() and (tmp_path / "out" / "v7.partial").is_symlink()


@pytest.mark.parametrize("folder", ["empty", "deep/empty", "live", ".scratch"])
def test_a_foreign_folder_is_refused(plain, folder):
    (plain / folder).mkdir()
    with pytest.raises(InputError, match="empty folder"):
        open_artifact(plain)
    (plain / folder / "file").touch()
    with pytest.raises(InputError, match=f"{folder}/file"):
        open_artifact(plain)


def test_a_stage_that_leaves_a_link_publishes_nothing(tmp_path):
    with pytest.raises(InputError, match="symbolic link"), writing(tmp_path / "x", ORIGIN) as out:
        out.file("a").write_text("a")
        (out.path / "b").symlink_to("/etc/passwd")
    assert not (tmp_path / "x").exists()


def test_empty_folders_of_a_stage_are_removed(tmp_path):
    with writing(tmp_path / "x", ORIGIN) as out:
        out.file("empty/er/file")
        out.file("a").write_text("a")
        out.scratch("checkpoints")
    assert {path.name for path in (tmp_path / "x").rglob("*")} == {"a", MANIFEST}
