"""Series: one writer at a time, a number for each version, and unfinished runs that are kept, continued or refused."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from realmctl.artifacts import MANIFEST, open_artifact, series, unfinished, verify, version_numbers
from realmctl.artifacts.catalogue import listing
from realmctl.artifacts.disk import CheckedFile
from realmctl.artifacts.unfinished import letting_all_step_aside
from realmctl.cli.available_stages import other_commands
from realmctl.errors import AccessError, ConfigError, InputError, LockedError, MismatchError
from realmctl.pipeline import making
from realmctl.pipeline.discovery import own_stages
from tests.faults.children import ended, forked, killed
from tests.fixtures.small_stages import Child, Plain, Steps

ROOT = Path(__file__).resolve().parents[2]
PYTHON = [sys.executable, "-c"]
MAKE = "import sys; from tests.fixtures.small_stages import *; Plain(text=sys.argv[2]).make(sys.argv[1])"


def python(code: str, *arguments: object, **kwargs: object) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*PYTHON, code, *map(str, arguments)], cwd=ROOT, **pipes, **kwargs)  # type: ignore[call-overload, no-any-return]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock", ".last"}


def interrupted(out: Path, steps: int = 4) -> None:
    with pytest.raises(RuntimeError, match="stopped"):
        Steps(steps=steps, stop_before=2).make(out)
    assert names(out) == {"v1.partial"}


def test_equal_recipe_continues_and_ends_the_same(tmp_path):
    interrupted(tmp_path / "steps")
    resumed = Steps().make(tmp_path / "steps")
    assert (resumed.metrics["taken"], resumed.path.name) == (2, "v1")
    assert resumed.content == Steps().make(tmp_path / "whole").content
    assert names(resumed.path) == {"steps.txt", MANIFEST}


def test_another_recipe_is_refused_and_names_the_setting(tmp_path, monkeypatch):
    monkeypatch.setattr(unfinished, "BRIEF_SECONDS", 0)
    interrupted(tmp_path / "steps")
    with pytest.raises(MismatchError, match=r"v1\.partial.*steps.*4.*9") as error:
        Steps(steps=9).make(tmp_path / "steps")
    assert error.value.exit_code == 4
    assert Steps().make(tmp_path / "steps").metrics["taken"] == 2
    assert Steps(steps=9).make(tmp_path / "steps").path.name == "v2"


def test_another_input_is_refused_too(tmp_path, monkeypatch):
    monkeypatch.setattr("realmctl.artifacts.unfinished.BRIEF_SECONDS", 0)

    class Resumable(Child):
        """Reads and stops."""

        resumable = True

        def run(self, out):
            (out.scratch("s") / "progress").touch()
            raise RuntimeError("stopped")

    first, second = (Plain(text=text).make(tmp_path / text) for text in "ab")
    with pytest.raises(RuntimeError):
        Resumable(plain=first).make(tmp_path / "out")
    with pytest.raises(MismatchError, match=f"plain.*{first.content[:24]}.*{second.content[:24]}"):
        Resumable(plain=second).make(tmp_path / "out")


@pytest.mark.parametrize("recipe", [None, "{}", "{"])
def test_what_may_be_of_someone_else_is_moved_aside(tmp_path, recipe):
    """A folder with the name of an unfinished run, and without what `new_partial` writes into it."""
    partial = tmp_path / "out" / "v1.partial"
    partial.mkdir(parents=True)
    (partial / "mine").write_text("mine")
    if recipe:
        (partial / "recipe.json").write_text(recipe)
    Plain().make(tmp_path / "out")
    [kept] = tmp_path.rglob("mine")
    assert kept.read_text() == "mine" and kept.parent.parent.name == "quarantine"


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("nowhere"), os.mkfifo])
def test_what_has_the_name_of_a_run_and_is_no_folder_is_left_alone(tmp_path, make):
    (tmp_path / "out").mkdir()
    other = tmp_path / "out" / "v1.partial"
    make(other)
    assert Plain().make(tmp_path / "out").path.name == "v2"
    assert os.path.lexists(other)


def test_a_version_whose_manifest_is_gone_is_damaged_and_not_hidden(tmp_path, realmctl):
    out = tmp_path / "w" / "plain"
    for text in "ab":
        Plain(text=text).make(out)
    for name in ("v1", "v2"):
        manifest = (out / name / MANIFEST).rename(tmp_path / MANIFEST)
        assert version_numbers(out) == [1, 2]
        assert [version.kind for version in listing(tmp_path / "w")].count("damaged") == 1
        for place in (tmp_path / "w", out / name):
            code, _, err = realmctl("verify", place)
            assert code == 3 and f"plain/{name}" in err
        manifest.rename(out / name / MANIFEST)
    (out / "v2" / MANIFEST).unlink()
    with pytest.raises(InputError, match="v2"):  # and not v1, which the name of the series does not mean
        open_artifact(out)
    assert Plain(text="b").make(out).path.name == "v3"


def test_a_folder_of_the_name_of_a_version_is_none_outside_of_a_series(tmp_path):
    for name in ("v1", "v2"):
        Plain().make(tmp_path / name / "plain")
    assert version_numbers(tmp_path) == []
    assert len(listing(tmp_path)) == len(listing(tmp_path / "v1")) * 2 == 2


def test_progress_that_is_none_is_not_kept(tmp_path):
    with pytest.raises(RuntimeError):
        Steps(stop_before=0).make(tmp_path / "steps")
    assert names(tmp_path / "steps") == set()


def test_what_a_killed_run_left_of_a_stage_that_does_not_resume_is_swept(tmp_path):
    leftover = tmp_path / "plain" / "v1.partial"
    (leftover / ".scratch").mkdir(parents=True)
    for name in ("text.txt", "foreign", ".scratch/x", "manifest.json.writing"):
        (leftover / name).write_text("old")
    made = Plain().make(tmp_path / "plain")
    assert set(made.manifest.files) == {"text.txt", "deep/er/copy.bin", "corpus.txt"}


def test_a_manifest_half_written_by_a_killed_run_is_no_file_of_the_next(tmp_path):
    interrupted(tmp_path / "steps")
    (tmp_path / "steps" / "v1.partial" / "manifest.json.writing").write_text("{")
    assert set(Steps().make(tmp_path / "steps").manifest.files) == {"steps.txt"}


def test_weights_half_written_by_a_killed_run_are_no_file_of_the_next(tmp_path):
    """safetensors writes `.tmpXXXXXX` beside the file, and renames it. A scratch file of such a name is a checkpoint's."""
    interrupted(tmp_path / "steps")
    partial = tmp_path / "steps" / "v1.partial"
    for folder in (partial, partial / "block"):
        folder.mkdir(exist_ok=True)
        (folder / ".tmpCkJ8cr").touch()
    (partial / "block" / "config.json").write_text("{}")
    (partial / ".scratch" / ".tmp").touch()
    commits = Steps().make(tmp_path / "steps")
    assert set(commits.manifest.files) == {"steps.txt", "block/config.json"}


@pytest.mark.parametrize("stage", [Plain(), Steps()])
def test_killed_between_manifest_and_rename_is_committed_by_the_next_run(tmp_path, stage, capsys):
    done = stage.make(tmp_path / "out")
    (tmp_path / "out" / "v1").rename(tmp_path / "out" / "v1.partial")
    again = stage.make(tmp_path / "out")
    assert (again.path.name, again.content, again.manifest.time) == ("v1", done.content, done.manifest.time)
    assert "which a killed run had finished" in capsys.readouterr().err


def test_it_is_committed_before_a_run_of_another_recipe_too(tmp_path):
    Plain(text="a").make(tmp_path / "out").path.rename(tmp_path / "out" / "v1.partial")
    assert Plain(text="b").make(tmp_path / "out").path.name == "v2"
    assert open_artifact(tmp_path / "out" / "v1").file("text.txt").read_text() == "a"


def test_a_finished_run_that_is_damaged_is_not_committed(tmp_path):
    partial = Plain().make(tmp_path / "out").path.rename(tmp_path / "out" / "v1.partial")
    (partial / "text.txt").chmod(0o644)
    (partial / "text.txt").write_text("jello")
    with pytest.raises(InputError, match=r"text\.txt"):
        Plain().make(tmp_path / "out")
    assert version_numbers(tmp_path / "out") == []


def test_what_lies_beside_the_versions_is_left_alone(tmp_path):
    out = tmp_path / "out"
    for name in ("vacation.partial", "v01.partial", "notes", "v2"):
        (out / name).mkdir(parents=True)
        (out / name / "mine").write_text("mine")
    assert Plain().make(out).path.name == "v3"
    assert names(out) == {"vacation.partial", "v01.partial", "notes", "v2", "v3"}
    assert (out / "vacation.partial" / "mine").read_text() == "mine"


def test_a_damaged_version_is_passed_over_with_a_warning(tmp_path, capsys):
    broken = Plain().make(tmp_path / "out").path
    (broken / "text.txt").unlink()
    assert Plain().make(tmp_path / "out").path.name == "v2"
    assert f"warning: plain {broken} is damaged" in capsys.readouterr().err


def test_a_version_that_a_run_finds_is_the_newest_again(tmp_path, capsys):
    out = tmp_path / "out"
    for text in "abc":
        Plain(text=text).make(out)
    for text, name in [("a", "v1"), ("b", "v2"), ("c", "v3"), ("a", "v1")]:
        before = open_artifact(out).path.name
        capsys.readouterr()
        assert Plain(text=text).make(out).path.name == name == open_artifact(out).path.name
        told = capsys.readouterr().err
        assert "warning" not in told and told.count("\n") == 2
        assert (
            before == name
            or f"v{'abc'.index(text) + 1} has this recipe, and is the newest again, instead of {before}" in told
        )
    assert [each.path.name for each in series.readable_versions(out)] == ["v1", "v3", "v2"]
    assert [each.path.name for each in listing(out)] == ["v2", "v3", "v1"]
    assert Plain(text="a").make(out).path.name == "v1" and "nothing to do" in capsys.readouterr().err
    copied = Path(shutil.copytree(out, tmp_path / "copy"))
    assert open_artifact(copied).path == copied / "v1"
    assert Plain(text="d").make(out).path.name == "v4" == open_artifact(out).path.name  # what is made is newer than all


def test_the_newest_again_is_kept_by_gc_and_gives_way_when_it_is_deleted(tmp_path):
    out = tmp_path / "out"
    for text in "aba":
        Plain(text=text).make(out)
    found = pytest.importorskip("realmctl.extras.gc.collecting").collect([out], 1, True)
    assert [each.path.name for each in found.gone] == ["v2"] and open_artifact(out).path.name == "v1"
    shutil.rmtree(out / "v1")
    assert Plain(text="c").make(out).path.name == "v3" == open_artifact(out).path.name
    Plain(text="d").make(out)
    Plain(text="c").make(out)
    for number in (3, 4):
        shutil.rmtree(out / f"v{number}")
    (out / ".last").unlink()
    assert Plain(text="e").make(out).path.name == "v5" == open_artifact(out).path.name


def test_a_damaged_word_on_the_newest_is_an_error_that_says_what_to_do(tmp_path):
    out = tmp_path / "out"
    for text in "aba":
        Plain(text=text).make(out)
    whole = (out / ".newest").read_bytes()
    for damaged in (b"", whole[:-3], whole.replace(b"1", b"2", 1), b'{"newest": "v1"}', b"\xff"):
        (out / ".newest").write_bytes(damaged)
        for act in (lambda: open_artifact(out), lambda: Plain(text="a").make(out)):
            with pytest.raises(InputError, match=rf"rm {out}/.newest"):
                act()
    assert version_numbers(out) == [1, 2]
    (out / ".newest").unlink()
    assert open_artifact(out).path.name == "v2" and Plain(text="a").make(out).path == open_artifact(out).path


def test_who_may_not_write_is_told_that_an_older_version_cannot_be_the_newest_again(tmp_path, monkeypatch):
    out = tmp_path / "out"
    for text in "ab":
        Plain(text=text).make(out)
    monkeypatch.setattr(making.os, "access", lambda path, mode: False)
    assert Plain(text="b").make(out).path.name == "v2"
    with pytest.raises(AccessError, match=r"v1 has this recipe, but v2 is the newest"):
        Plain(text="a").make(out)


def test_a_version_beside_the_pinned_one_is_told_when_it_is_made_and_when_it_is_found(tmp_path, capsys):
    series.pin(Plain(text="a").make(tmp_path / "out"))
    for _ in range(2):
        capsys.readouterr()
        assert Plain(text="b").make(tmp_path / "out").path.name == "v2"
        told = capsys.readouterr().err
        assert "warning" in told and f"`realmctl pin {tmp_path / 'out' / 'v2'}`" in told
    assert Plain(text="a").make(tmp_path / "out").path.name == "v1"
    assert "warning" not in capsys.readouterr().err


def test_two_who_pin_at_once_do_not_meet(tmp_path, monkeypatch):
    first, second = (Plain(text=text).make(tmp_path / "out") for text in "ab")
    compare = CheckedFile._compare

    def interrupted(file: CheckedFile) -> None:
        monkeypatch.setattr(CheckedFile, "_compare", compare)
        series.pin(second)
        assert open_artifact(tmp_path / "out").path == second.path
        compare(file)

    monkeypatch.setattr(CheckedFile, "_compare", interrupted)
    series.pin(first)
    assert open_artifact(tmp_path / "out").path == first.path


@pytest.mark.parametrize("out", ["", " ", "a\nb", "a\x1b[0m", "a\x00b"])
def test_a_name_that_is_none_is_refused(out):
    with pytest.raises(ConfigError, match="output folder"):
        Plain().make(out)


def test_places_that_hold_no_series_are_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    version = Plain().make(tmp_path / "plain").path
    for place in (tmp_path / "file", tmp_path / "file" / "below", version, version / "deep", version / "new" / "w"):
        with pytest.raises(ConfigError, match=r"is a file|lies in an artifact"):
            Plain(text="x").make(place)
    with pytest.raises(ConfigError, match="plain"):
        Child(plain=version).make(tmp_path / "plain")
    verify(open_artifact(version))
    assert (tmp_path / "file").read_text() == "mine"


def test_a_workspace_is_no_series_and_a_series_no_workspace(tmp_path):
    """Else `ls`, `verify` and `gc` would see only one of the two."""
    for name in ("w/plain", "w2/deep/plain"):
        Plain().make(tmp_path / name)
    for place in ("w", "w2", "w2/deep", "w/plain/sub", "w/plain/sub/deeper"):
        with pytest.raises(ConfigError, match="output folder"):
            Plain().make(tmp_path / place)
    assert len(listing(tmp_path / "w")) == len(listing(tmp_path / "w2")) == 1


@pytest.mark.parametrize("name", ["v1", "v12.partial", ".v1.deleted", ".lock", ".last", "quarantine", MANIFEST])
def test_names_within_a_series_are_no_names_of_one(tmp_path, name):
    for place in (tmp_path / name, tmp_path / "new" / name, tmp_path / "x" / ".." / name):
        with pytest.raises(ConfigError, match=re.escape(name)):
            Plain().make(place)
    Plain().make(tmp_path / name / "plain")  # a workspace may have any name
    assert not list(tmp_path.glob("*.partial/v1"))


def test_links_on_the_way_are_followed_and_one_that_leads_nowhere_is_named(tmp_path):
    version = Plain().make(tmp_path / "w" / "plain").path
    (tmp_path / "in").symlink_to(version)
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "w")
    for place in ("in", "in/sub", "nowhere", "nowhere/sub", "loop/sub", "elsewhere/plain/sub"):
        with pytest.raises(ConfigError, match="output folder"):
            Plain().make(tmp_path / place)
    assert Plain(text="x").make(tmp_path / "elsewhere" / "plain").path.name == "v2"


def test_a_manifest_of_another_program_is_no_artifact(tmp_path):
    (tmp_path / MANIFEST).write_text('{"name": "a web page"}')
    assert Plain().make(tmp_path / "sub").path.exists()


def test_the_home_folder_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Plain().make("~/out").path == tmp_path / "out" / "v1"


def test_a_second_writer_is_told_who_holds_the_series(tmp_path):
    with series.locked(tmp_path / "out"):
        second = python(MAKE, tmp_path / "out", "x")
        assert second.wait() == 1
        assert second.stderr is not None
        said = second.stderr.read()
    assert "LockedError" in said and f"(process {os.getpid()})" in said
    with series.locked(tmp_path / "out"), pytest.raises(LockedError) as error:
        Plain().make(tmp_path / "out")
    assert error.value.exit_code == 7
    assert Plain().make(tmp_path / "out").path.name == "v1"


def test_what_is_made_already_is_found_while_another_run_holds_the_series(tmp_path):
    made = Plain().make(tmp_path / "out")
    with series.locked(tmp_path / "out"):
        assert Plain().make(tmp_path / "out").path == made.path


def test_a_killed_holder_frees_the_series_even_while_its_workers_live(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from realmctl.artifacts import series; import subprocess\n"
        "with series.locked(Path(sys.argv[1])):\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "    print(child.pid, flush=True); time.sleep(60)"
    )
    holder = python(code, tmp_path / "out")
    assert holder.stdout is not None
    orphan = int(holder.stdout.readline())
    try:
        with pytest.raises(LockedError, match=str(holder.pid)):
            Plain().make(tmp_path / "out")
        holder.kill()
        holder.wait()
        assert Plain().make(tmp_path / "out").path.name == "v1"
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_two_writers_never_get_one_number(tmp_path):
    code = (
        "import sys; from tests.fixtures.small_stages import *; from realmctl.errors import LockedError\n"
        "for n in range(5):\n"
        "    while True:\n"
        "        try: print(Plain(text=f'{sys.argv[2]}-{n}').make(sys.argv[1]).path.name); break\n"
        "        except LockedError: pass"
    )
    writers = [python(code, tmp_path / "out", name) for name in "abc"]
    numbers = [line for writer in writers for line in writer.communicate()[0].split()]
    assert sorted(numbers) == sorted(f"v{n}" for n in range(1, 16))
    texts = {open_artifact(tmp_path / "out" / name).file("text.txt").read_text() for name in numbers}
    assert texts == {f"{name}-{n}" for name in "abc" for n in range(5)}


def test_kills_at_random_times_lose_nothing_and_publish_nothing_broken(tmp_path):
    rng, out = random.Random(7), tmp_path / "out"
    for n in range(12):
        writer = forked(lambda n=n: Plain(text=f"{n}").make(out), tmp_path / "log")
        if ended(writer, within=rng.uniform(0, 0.03)) is None:
            killed(writer)
        for number in version_numbers(out):
            verify(open_artifact(out / f"v{number}"))
    count = len(version_numbers(out))
    made = Plain(text="last").make(out)
    assert made.path.name in (f"v{count + 1}", f"v{count + 2}") and not list(out.glob("*.partial"))


@pytest.mark.parametrize("place", ["w/plain/v1/x", "w/plain/x", "w/plain/v7"])
@pytest.mark.parametrize(
    "command",
    [
        ["report", "w", "--out"],
        ["split", "q.jsonl", "--dev", "dev.jsonl", "--train"],
        ["demo"],
        ["chunk", "q.jsonl", "--out"],
    ],
)
def test_no_command_writes_into_an_artifact_or_a_series(realmctl, command, place):
    if command[0] not in {*other_commands(), *own_stages()}:
        pytest.skip("the room of this command is not there")
    Plain().make("w/plain")
    Path("q.jsonl").write_text('{"question": "Who?", "answer": ["A"]}\n')
    code, _, err = realmctl(*command, place)
    assert code == 2 and place in err
    assert {path.name for path in Path("w/plain").iterdir()} == {"v1", ".lock", ".last"}
    verify(open_artifact("w/plain"))


def test_an_unfinished_run_of_less_than_a_minute_steps_aside_and_nothing_of_it_is_lost(tmp_path, capsys):
    out = tmp_path / "steps"
    interrupted(out)
    capsys.readouterr()
    with pytest.raises(RuntimeError, match="stopped"):
        Steps(steps=9, stop_before=2).make(out)
    told = capsys.readouterr().err
    assert "v1.partial is an unfinished run with other settings or inputs. v1.partial was moved to" in told
    assert list((out / "quarantine/v1.partial-1/.scratch").rglob("*"))
    assert Steps(steps=9).make(out).path.name == "v1"


def test_an_unfinished_run_of_a_minute_stands_in_the_way_but_for_a_shortcut(tmp_path):
    out = tmp_path / "steps"
    interrupted(out)
    recipe = out / "v1.partial/recipe.json"
    began = recipe.stat().st_mtime - 61
    os.utime(recipe, (began, began))
    with pytest.raises(MismatchError, match="rm -r"):
        Steps(steps=9).make(out)
    assert (out / "v1.partial").is_dir()
    with letting_all_step_aside():
        assert Steps(steps=9).make(out).path.name == "v1"
    assert (out / "quarantine/v1.partial-1").is_dir()
