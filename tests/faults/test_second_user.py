"""Files, locks, leases and unfinished runs of another user: read, continued or refused in one clear error, and nothing lost."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact, verify, version_numbers
from realmctl.artifacts.catalogue import listing, versions_at
from realmctl.artifacts.series import locked, pin
from realmctl.extras.gc.collecting import collect
from realmctl.extras.serve.versions import Versions
from stages.ict_init import IctInit
from tests.faults.children import as_root, ended, exit_code, forked
from tests.faults.counting import count
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Stopped, documents, stop_at
from tests.fixtures.small_stages import Child, Plain

NOBODY = 65_534
pytestmark = as_root


def as_nobody(act: Callable[[], object], log: Path) -> int:
    """Do `act` in a child process of another user. Returns 0, or the exit code of the one clear error that it ended with."""

    def other() -> int:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        return exit_code(act)

    code = ended(forked(other, log))
    assert code is not None
    return code


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that every user may enter, in the temporary directory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


@pytest.fixture
def group_folder(shared_folder: Path) -> Iterator[Path]:
    """A folder of root's in which the other user's group may write, with the file mask that such folders need."""
    folder = shared_folder / "group"
    folder.mkdir()
    os.chown(folder, 0, NOBODY)
    folder.chmod(0o2775)
    before = os.umask(0o002)
    yield folder
    os.umask(before)


def test_files_of_another_user_are_read_or_refused_clearly(shared_folder, tmp_path):
    theirs, mine = Plain().make(shared_folder / "w/plain").path, shared_folder / "mine"
    mine.mkdir()
    os.chown(mine, NOBODY, NOBODY)
    series, log = theirs.parent, tmp_path / "log"
    codes = [
        as_nobody(lambda: Child(plain=open_artifact(theirs)).make(mine / "child"), log),  # reading is allowed
        as_nobody(lambda: Plain().make(series), log),  # made already
        as_nobody(lambda: Plain(text="other").make(series), log),  # writing is not allowed
        as_nobody(lambda: Plain().make(shared_folder / "w/more"), log),
        as_nobody(lambda: pin(open_artifact(theirs)), log),
    ]
    Plain(text="newer").make(series)
    codes.append(as_nobody(lambda: collect([series.parent], 1, True), log))
    (theirs / "text.txt").chmod(0o600)
    codes.append(as_nobody(lambda: verify(open_artifact(theirs)), log))
    theirs.chmod(0o700)
    codes.append(as_nobody(lambda: verify(open_artifact(theirs)), log))
    assert codes == [0, 0, 3, 3, 3, 3, 3, 3], log.read_text()
    assert version_numbers(series) == [1, 2] and {path.name for path in series.iterdir()} <= {
        "v1",
        "v2",
        ".lock",
        ".last",
    }
    count("reads and writes of another user's files", len(codes))


def test_what_is_private_is_listed_as_unreadable_and_stands_in_the_way_of_what_needs_it(shared_folder, tmp_path):
    w, log = shared_folder / "w", tmp_path / "log"
    Plain().make(w / "plain")
    newest = Plain(text="other").make(w / "plain").path
    Plain().make(w / "secret")
    for name in ("lost+found", ".trash"):  # hold no series, whoever owns them
        (w / name).mkdir(mode=0o700)

    def listed() -> int:
        found = {str(one.path.relative_to(w)): one.kind for one in listing(w)}
        assert found == {"plain/v1": "plain", "plain/v2": "unreadable", "secret": "unreadable"}
        return len(versions_at(w))

    (w / "secret").chmod(0o700)
    newest.chmod(0o700)
    acts = [lambda: open_artifact(w / "plain"), lambda: open_artifact(w / "secret"), lambda: collect([w], 1, False)]
    assert as_nobody(listed, log) == 0, log.read_text()
    assert [as_nobody(act, log) for act in acts] == [3, 3, 3] and "damaged" not in log.read_text()
    assert as_nobody(lambda: Plain().make(w / "plain"), log) == 3  # the older version is not taken in its stead
    count("reads and writes of another user's files", 5)


def test_a_server_that_may_not_write_is_refused_before_an_edit(shared_folder, chain, tmp_path):
    w, log = Path(shutil.copytree(chain.folder, shared_folder / "w")), tmp_path / "log"
    w.chmod(0o755)

    def serve() -> None:
        places = {"blocks": w / "blocks", "embeddings": w / "embeddings", "indexes": w / "index"}
        versions = Versions(**places, qa_model=None, model=w / "retriever")
        served = versions.newest()
        versions.check_edits(served)

    assert as_nobody(serve, log) == 2 and f"{w / 'blocks'}" in log.read_text()
    count("reads and writes of another user's files", 1)


def test_a_group_shares_a_workspace(group_folder, tmp_path):
    series, log = group_folder / "plain", tmp_path / "log"
    first = Plain().make(series)
    assert as_nobody(lambda: Plain(text="other").make(series), log) == 0, log.read_text()
    assert version_numbers(series) == [1, 2] and verify(open_artifact(series))
    with locked(series):
        assert as_nobody(lambda: Plain(text="third").make(series), log) == 7
    assert as_nobody(lambda: collect([series], 1, True), log) == 0
    assert version_numbers(series) == [1, 2]  # open here, as `first`
    del first
    assert as_nobody(lambda: collect([series], 1, True), log) == 0, log.read_text()
    assert version_numbers(series) == [2]
    count("reads and writes of another user's files", 5)


def test_one_of_a_group_continues_what_another_began(group_folder, tmp_path, monkeypatch, one_thread):
    blocks, log = make_blocks(group_folder / "blocks", documents()), tmp_path / "log"
    stage = IctInit(blocks=blocks, bert="scratch:L1-H16", projection=8, steps=2, batch_size=4, checkpoint_every=1)
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        stop_at(patch, 1)
        stage.make(group_folder / "retriever")
    [weights] = group_folder.glob("retriever/v1.partial/**/step-*/modules.safetensors")
    weights.chmod(0o600)
    assert as_nobody(lambda: stage.make(group_folder / "retriever"), log) == 3  # it is not damaged
    weights.chmod(0o660)
    assert as_nobody(lambda: stage.make(group_folder / "retriever"), log) == 0, log.read_text()
    assert "after step 1 of 2" in log.read_text() and not list(group_folder.rglob("quarantine"))
    assert open_artifact(group_folder / "retriever").content == stage.make(tmp_path / "alone").content
    count("reads and writes of another user's files", 2)
