"""Few file handles: what is opened with 0, 1, 2, … handles left ends as with many, or says that handles ran out.

Nothing looks damaged for it: no other version is served, nothing is set aside, and no number is given again.
"""

from __future__ import annotations

import json
import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact
from realmctl.artifacts.catalogue import listing
from realmctl.corpus.corpus import Corpus
from realmctl.errors import as_realmctl_error
from realmctl.extras.gc.collecting import collect
from realmctl.extras.serve.versions import Versions
from realmctl.index.index_type import open_index
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.ict_init import IctInit
from tests.faults.children import ended, forked
from tests.faults.counting import count, rounds
from tests.fixtures.chain import Stopped, stop_at
from tests.fixtures.retriever import make_retriever

MOST = 48
VERSIONS = 5
RAN_OUT = 5
HALF_WRITTEN = re.compile(r"/\.realmctl-|/step-\d+\.partial")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Path:
    """Blocks in several versions, each with its index, and two unfinished runs."""
    folder = tmp_path_factory.mktemp("handles") / "w"
    (folder.parent / "corpus.jsonl").write_text(
        "\n".join(
            json.dumps({"id": name, "title": name, "text": f"Here {name} was born. They live in Harrow."})
            for name in "abcdefgh"
        )
    )
    blocks = Chunk(corpus=(folder.parent / "corpus.jsonl",), tokenizer="train:200", workers=1).make(folder / "blocks")
    retriever = make_retriever(folder / "retriever", blocks)
    embeddings = Embed(blocks=blocks, retriever=retriever).make(folder / "embeddings")
    BuildIndex(embeddings=embeddings, type="exact").make(folder / "index")
    Embed(blocks=blocks, retriever=retriever).make(folder / "once")
    for number in range(VERSIONS - 1):
        server(folder).edit(server(folder).newest(), [edit(number)])
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(Stopped):
            training(folder).make(folder / "trained")
    return folder


def server(folder: Path) -> Versions:
    return Versions(
        blocks=folder / "blocks",
        embeddings=folder / "embeddings",
        indexes=folder / "index",
        qa_model=None,
        model=open_artifact(folder / "retriever"),
    )


def edit(number: int) -> dict[str, str]:
    return {"op": "update", "id": "a", "text": f"In {1900 + number} a was born in Tarrant."}


def training(folder: Path) -> IctInit:
    blocks = folder / "blocks" / "v1"
    return IctInit(
        blocks=blocks, bert="scratch:L1-H16", projection=8, steps=4, batch_size=4, warmup=0, checkpoint_every=1
    )


def leave(free: int) -> None:
    """Lower the limit so that this process can open `free` more files."""
    used = {int(path.name) for path in Path("/proc/self/fd").iterdir()}
    limit = 0
    while limit - sum(number < limit for number in used) < free:
        limit += 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def with_few_handles(act: Callable[[], str], free: int, log: Path) -> str | None:
    """What `act` returns in a child that can open `free` more files; None if it says that handles ran out."""
    result = log.with_suffix(".result")

    def child() -> int:
        with result.open("w") as file:
            leave(free)
            try:
                file.write(act())
            except Exception as error:
                known = as_realmctl_error(error)
                if known is None or known.exit_code != RAN_OUT:
                    raise
                return RAN_OUT
        return 0

    code = ended(forked(child, log), 120)
    assert code in (0, RAN_OUT), log.read_text()[-3000:]
    return result.read_text() if code == 0 else None


def contents(folder: Path) -> set[str]:
    names = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    # Without a handle, a folder cannot be removed: a half-written checkpoint and the folder of an edit are left to the next run.
    return {name for name in names if Path(name).name not in (".lock", ".last") and not HALF_WRITTEN.search(name)}


def try_all(folder: Path, act: Callable[[Path], str], changes: bool = False) -> None:
    """Try with every number of handles. What changes the folder gets a copy each time, and changes all of it or nothing."""
    act(Path(shutil.copytree(folder, folder.parent / "warm")))  # imports what it imports late
    shutil.rmtree(folder.parent / "warm")
    right = None
    outcomes = list[str | None]()
    for free in range(MOST, -1, -1 if rounds() > 1 else -6):
        own = Path(shutil.copytree(folder, folder.parent / f"own{free}")) if changes else folder
        before = contents(own)
        outcome = with_few_handles(lambda own=own: act(own), free, folder.parent / f"log{free}")
        right = outcome if right is None else right
        assert right is not None and outcome in (None, right)
        if not changes or outcome is None:
            assert contents(own) == before
        if changes and outcome is None:
            assert act(own) == right  # with enough handles
        outcomes.append(outcome)
        if changes:
            shutil.rmtree(own)
    assert outcomes[0] is not None and outcomes[-1] is None
    count("numbers of file handles left", len(outcomes))


def served(folder: Path) -> str:
    newest = server(folder).newest()
    assert newest.index is not None
    return f"{newest.name} {len(Corpus(newest.blocks))} {open_index(newest.index.path).dimension}"


def listed(folder: Path) -> str:
    return str([(version.path.name, version.kind, version.error) for version in listing(folder)])


def collected(folder: Path) -> str:
    return str([version.path.name for version in collect([folder], 1, False).gone])


def found(folder: Path) -> str:
    """A stage that was made before, and whose version is the newest of its series."""
    return Embed(blocks=folder / "blocks" / "v1", retriever=folder / "retriever").make(folder / "once").path.name


@pytest.mark.parametrize("act", [served, listed, collected, found], ids=lambda act: act.__name__)
def test_what_reads(made_once, act):
    try_all(made_once, act)


def edited(folder: Path) -> str:
    version = server(folder).edit(server(folder).newest(), [edit(99)]).version
    assert version == server(folder).newest()
    return version.name


def resumed(folder: Path) -> str:
    return training(folder).make(folder / "trained").content


@pytest.mark.parametrize("act", [edited, resumed], ids=lambda act: act.__name__)
def test_what_writes(made_once, act):
    try_all(made_once, act, changes=True)
