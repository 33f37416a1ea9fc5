"""Sources: known by what is in them, wherever they lie, and brought here from pipes and the hub."""

from __future__ import annotations

import io
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from realmctl.artifacts.hashing import digest, digest_file, digest_source, files_below
from realmctl.artifacts.series import pin
from realmctl.errors import ConfigError, InputError, ResourceError
from realmctl.pipeline import sources
from realmctl.pipeline.sources import digest_of, localise
from tests.fixtures.small_stages import Plain

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path) -> Path:
    for name in ("b/2.txt", "a.txt", "b/1.txt", ".hidden", "c/.git/config"):
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_text(name)
    return tmp_path / "folder"


def test_a_folder_is_its_files_with_their_names(folder, tmp_path):
    assert [str(path.relative_to(folder)) for path in files_below(folder)] == ["a.txt", "b/1.txt", "b/2.txt"]
    before = digest_source(folder)
    assert digest_source(folder.rename(tmp_path / "moved")) == before
    moved = tmp_path / "moved"
    (moved / ".hidden").write_text("other")
    assert digest_source(moved) == before
    (moved / "a.txt").rename(moved / "z.txt")
    assert digest_source(moved) != before


def test_a_file_is_its_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 5_000_000)
    (tmp_path / "b").write_bytes(b"x" * 5_000_000)
    assert digest_source(tmp_path / "a") == digest_file(tmp_path / "b")
    with pytest.raises(InputError, match="does not exist"):
        digest_source(tmp_path / "c")


def test_digests_are_of_canonical_json():
    assert digest({"b": 1, "a": [1.5, "é", None]}) == digest({"a": [1.5, "é", None], "b": 1})
    values = [1, 1.5, "1", [1], {"1": 1}, None, "é", "e\u0301", "\udc80"]
    assert len({digest(value) for value in values}) == len(values)
    with pytest.raises(ValueError, match="JSON"):
        digest(float("nan"))


def test_a_name_that_is_no_unicode_does_no_harm(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    made = Plain(corpus=(tmp_path / "folder" / os.fsdecode(b"caf\xe9.txt"),)).make(tmp_path / "plain")
    assert made.file("corpus.txt").read_text() == "x"
    assert digest_source(tmp_path / "folder") == digest_source(tmp_path / "folder")


def test_what_a_source_adds_to_a_recipe(folder):
    assert digest_of(None, ()) is None
    assert digest_of("train:10", ("train:",)) == "train:10"
    assert digest_of((folder, folder / "a.txt"), ()) == [digest_source(folder), digest_file(folder / "a.txt")]
    read = digest_of(folder, (), ("a.txt", "z.txt"))
    (folder / "b" / "1.txt").write_text("not read")
    assert digest_of(folder, (), ("a.txt", "z.txt")) == read
    (folder / "z.txt").write_text("read")
    assert digest_of(folder, (), ("a.txt", "z.txt")) != read


def test_an_artifact_as_a_source_is_its_files_whenever_and_wherever_it_was_made(tmp_path, monkeypatch):
    one = Plain(text="a").make(tmp_path / "one")
    monkeypatch.setattr(platform, "node", lambda: "another-host")
    same = Plain(text="a").make(tmp_path / "same")
    assert digest_source(one.path) != digest_source(same.path)
    assert (
        digest_of(one.path, ()) == digest_of(same.path, ()) != digest_of(Plain(text="b").make(tmp_path / "b").path, ())
    )
    shutil.copytree(one.path, tmp_path / "edited")
    (tmp_path / "edited" / "text.txt").chmod(0o600)
    (tmp_path / "edited" / "text.txt").write_text("b")  # as long as before
    assert digest_of(tmp_path / "edited", ()) != digest_of(one.path, ())


def test_paths_stay_paths_and_texts_texts(folder, monkeypatch):
    assert localise(folder, (), False, "--x") == folder
    assert localise(str(folder), (), False, "--x") == str(folder)
    assert localise("train:9", ("train:",), True, "--x") == "train:9"
    monkeypatch.setenv("HOME", str(folder.parent))
    assert localise("~/folder", (), False, "--x") == str(folder)


@pytest.mark.parametrize("text", ["", "  ", "a\x00b", "~no-such-user/x"])
def test_what_is_no_path_is_refused(text):
    with pytest.raises(ConfigError, match="--x"):
        localise(text, (), True, "--x")


def test_what_is_not_there_is_named_with_its_flag():
    with pytest.raises(InputError, match=r"--corpus no/such/file: .*\(looked from /"):
        localise(Path("no/such/file"), (), False, "--corpus")


def feed(monkeypatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.fixture
def spools(tmp_path, monkeypatch) -> Path:
    """Where temporary files go; empty again after every stage."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_standard_input_is_a_file_like_any_other(tmp_path, monkeypatch, spools):
    (tmp_path / "c").write_bytes(b"some text\xff")
    from_file = Plain(corpus=(tmp_path / "c",)).make(tmp_path / "plain")
    feed(monkeypatch, b"some text\xff")
    assert Plain(corpus=(Path("-"),)).make(tmp_path / "plain").path == from_file.path
    feed(monkeypatch, b"another text")
    assert Plain(corpus=(Path("-"),)).make(tmp_path / "plain").file("corpus.txt").read_text() == "another text"
    assert not list(spools.iterdir())


@pytest.mark.parametrize("text", ["forbidden", "crash"])
def test_what_was_spooled_is_freed_on_every_way_out(tmp_path, monkeypatch, spools, text):
    class Crash(Plain):
        """Crashes."""

        def run(self, out):
            assert Path(self.corpus[0]).read_bytes() == b"data"
            raise ZeroDivisionError

    feed(monkeypatch, b"data")
    with pytest.raises((ConfigError, ZeroDivisionError)):
        Crash(corpus=(Path("-"),), text=text).make(tmp_path / "plain")
    assert not list(spools.iterdir())


def test_standard_input_is_read_once(tmp_path, monkeypatch, spools):
    feed(monkeypatch, b"data")
    with pytest.raises(ConfigError):
        Plain(corpus=(Path("-"), Path("-"))).make(tmp_path / "plain")
    assert not list(spools.iterdir())


def test_a_pipe_is_read_as_a_file(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"from a pipe",))
    thread.start()
    made = Plain(corpus=(tmp_path / "pipe",)).make(tmp_path / "plain")
    thread.join()
    assert made.file("corpus.txt").read_text() == "from a pipe"
    assert "/pipe: reading a pipe, until" in capsys.readouterr().err


@pytest.mark.parametrize("environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}])
def test_a_hub_id_that_cannot_be_had_is_one_paragraph(tmp_path, environment):
    code = (
        "from realmctl.pipeline.sources import localise; from realmctl.errors import InputError\n"
        "try: localise('no-one/no-model', (), True, '--bert')\n"
        "except InputError as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HF_HOME": str(tmp_path), **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert run.stdout.count("\n") == 1
    assert "--bert no-one/no-model: there is no such folder here" in run.stdout
    assert "Name a folder, or check the id and the network." in run.stdout


def test_a_hub_id_that_is_in_the_cache_needs_no_network(tmp_path):
    snapshot = tmp_path / "hub" / "models--some--model" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("0" * 40)
    code = "from realmctl.pipeline.sources import localise; print(localise('some/model', (), True, '--bert'))"
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == str(snapshot)


def test_the_encoder_of_the_extra_needs_no_hub(tmp_path, monkeypatch):
    """The pages name it by its id: with the extra `encoder` these commands run without a network."""
    [(name, package)] = sources.PACKAGED.items()
    (tmp_path / package / "model").mkdir(parents=True)
    (tmp_path / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, package, raising=False)
    with monkeypatch.context() as patched:
        patched.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("asked the hub"))
        assert localise(name, (), True, "--bert") == str(tmp_path / package / "model")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: 1 / 0)
    for each in (name, "google-bert/bert-base-uncased"):
        with pytest.raises(InputError, match=f"extra `encoder` has an encoder, {name}"):
            localise(each, (), True, "--bert")


@pytest.mark.parametrize("name", ["../x", "/no/such", "a/b/c", "./x", "C:\\x", "a b"])
def test_what_cannot_be_a_hub_id_is_not_looked_for_on_the_hub(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("realmctl.pipeline.sources._fetched", lambda *_: pytest.fail("asked the hub"))
    with pytest.raises(InputError, match="there is no such file or folder"):
        localise(name, (), True, "--bert")


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused_before_it_is_read(tmp_path, name):
    """`chunk /dev/zero` filled the temporary folder."""
    (tmp_path / "link").symlink_to(name)
    for path in (Path(name), tmp_path / "link"):
        with pytest.raises(InputError):
            localise(path, (), False, "corpus", tmp_path)


def test_standard_input_from_a_device_is_refused(tmp_path, monkeypatch):
    with Path("/dev/zero").open("rb") as zero:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(zero))
        with pytest.raises(InputError, match="corpus -"):
            localise(Path("-"), (), False, "corpus", tmp_path)


def test_a_stream_without_end_stops_before_the_disk_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "COPY_BYTES", 2**10)
    monkeypatch.setattr(sources, "MIN_FREE_BYTES", 2**62)
    feed(monkeypatch, b"x" * 2**12)
    with pytest.raises(ResourceError, match=r"corpus -.*TMPDIR"):
        localise(Path("-"), (), False, "corpus", tmp_path)
    assert (tmp_path / "stdin").stat().st_size == 2**10


def test_a_series_is_the_version_that_it_stands_for(tmp_path):
    first, second = (Plain(text=text).make(tmp_path / "plain") for text in ("one", "two"))
    series = tmp_path / "plain"
    assert localise(series, (), False, "--queries") == second.path
    assert localise(f"{series}/", (), True, "--rerank") == str(second.path)
    assert localise((series, first.path), (), False, "--queries") == (second.path, first.path)
    pin(first)
    assert localise(series, (), False, "--queries") == first.path


def test_a_folder_of_others_with_versions_stays_a_folder(tmp_path):
    """Documents of a program may lie in v1 and v2, each with a manifest.json of its own."""
    for name in ("v1", "v2"):
        (tmp_path / "docs" / name).mkdir(parents=True)
        (tmp_path / "docs" / name / "manifest.json").write_text('{"name": "an extension"}')
    assert localise(tmp_path / "docs", (), False, "--documents") == tmp_path / "docs"
