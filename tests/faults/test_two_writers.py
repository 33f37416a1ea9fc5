"""Several writers on one workspace: every interleaving of small schedules of edit, revise, chunk, embed, build-index and gc.

A writer runs in a thread up to its next pause: after it has read what is there, and after its work, before its result becomes a
version. The scheduler tries every order of these parts. flock and leases tell threads apart as they tell processes apart.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import combinations_with_replacement, islice
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact, lease, open_artifact, verify, version_numbers
from realmctl.artifacts.catalogue import listing
from realmctl.corpus.corpus import Corpus
from realmctl.errors import LockedError
from realmctl.extras.gc import collecting as gc
from realmctl.extras.gc.collecting import collect
from realmctl.extras.serve import versions as serving
from realmctl.extras.serve.versions import ServedVersion, Versions
from realmctl.pipeline import Stage, making
from realmctl.shortcuts.shipped import run_shipped
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.revise import Revise
from tests.faults.children import ended, forked
from tests.faults.counting import count, counting, rounds
from tests.fixtures.encoder_folders import folder_for
from tests.fixtures.retriever import make_retriever

PATIENCE = 300
KINDS = ("edit", "revise", "chunk", "embed", "build-index", "gc")
ALONE = {("embed", "build-index"), ("embed", "gc"), ("build-index", "gc"), ("gc", "gc")}
"""Pairs that only `make faults` tries: no writer of blocks is among them."""
PAIRS_OF_EDITS = {("edit", "edit"), ("edit", "revise"), ("revise", "revise"), ("edit", "chunk"), ("revise", "chunk")}
"""Pairs of which `make test` too tries every interleaving."""


class Writer(threading.Thread):
    """A thread that goes from one pause to the next when it is told to."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.act, self.ended = act, False
        self.made: object = None
        self.error: BaseException | None = None
        self._go, self._paused = threading.Semaphore(0), threading.Semaphore(0)

    def run(self) -> None:
        self._go.acquire()
        try:
            self.made = self.act()
        except BaseException as error:
            self.error = error
        self.ended = True
        self._paused.release()

    def pause(self) -> None:
        """Wait until the scheduler lets this thread go on."""
        self._paused.release()
        self._go.acquire()

    def step(self) -> None:
        """Let the thread go on to its next pause or its end."""
        self._go.release()
        assert self._paused.acquire(timeout=PATIENCE)


def pause() -> None:
    thread = threading.current_thread()
    if isinstance(thread, Writer):
        thread.pause()


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Path:
    """Blocks, retriever, embeddings and index: the workspace of a model that is served. `gc` may delete the first version of each."""
    folder = tmp_path_factory.mktemp("writers")
    texts = {"a": "Ada Lorn was born in Velford.", "b": "Ben Mott lives in Harrow.", "c": "Cora Nash works in Ashby."}
    for names in ("ab", "abc"):
        lines = [json.dumps({"id": name, "title": name, "text": texts[name]}) for name in names]
        corpus = folder / f"{names}.jsonl"
        corpus.write_text("\n".join(lines))
        tokenizer = "train:200" if names == "ab" else str(folder / "w" / "blocks" / "v1" / "tokenizer")
        blocks = Chunk(corpus=(corpus,), tokenizer=tokenizer, workers=1).make(folder / "w" / "blocks")
        if names == "ab":
            retriever = make_retriever(folder / "w" / "retriever", blocks)
        embeddings = Embed(blocks=blocks, retriever=retriever).make(folder / "w" / "embeddings")
        BuildIndex(embeddings=embeddings, type="exact").make(folder / "w" / "index")
    return folder / "w"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pause a stage before its manifest is written, an edit before its blocks are published, and gc before it deletes."""
    write, adopt, read = making.write_manifest, serving.adopt, gc.read_workspace

    def paused_write(folder: Path, *rest: object) -> None:
        if folder.parent.name != "made":  # not within an edit
            pause()
        write(folder, *rest)  # type: ignore[arg-type]

    def paused_adopt(series: Path, made: Artifact) -> Artifact:
        if made.kind == "blocks":
            pause()
        return adopt(series, made)

    def paused_read(
        folders: Sequence[Path], workspace: Path | None = None, known: Sequence[gc.VersionNeeds] = ()
    ) -> gc.WorkspaceContents:
        if known:
            pause()
        return read(folders, workspace, known)

    monkeypatch.setattr(making, "write_manifest", paused_write)
    monkeypatch.setattr(serving, "adopt", paused_adopt)
    monkeypatch.setattr(gc, "read_workspace", paused_read)
    monkeypatch.setattr(lease, "PATIENCE_SECONDS", 0.05)


class Workspace:
    """A copy of the workspace, and what writers do to it."""

    def __init__(self, made_once: Path, folder: Path) -> None:
        self.folder = Path(shutil.copytree(made_once, folder, copy_function=os.link))
        shutil.copy(made_once.parent / "abc.jsonl", folder.parent)
        self.model = open_artifact(self.folder / "retriever")
        self.server = Versions(
            blocks=folder / "blocks",
            embeddings=folder / "embeddings",
            indexes=folder / "index",
            qa_model=None,
            model=self.model,
        )

    def writer(self, kind: str, name: str) -> Writer:
        """A writer of this kind. It adds the document `name`, if it writes blocks."""

        def edit() -> object:
            served = self.server.newest()
            pause()
            return self.server.edit(served, [document(name)]).version.blocks

        def stage() -> object:
            if kind == "revise":
                edits = self.folder.parent / f"{self.folder.name}-{name}.jsonl"
                edits.write_text(json.dumps(document(name)))
                made = Revise(blocks=self.folder / "blocks", edits=edits, workers=1)
            elif kind == "chunk":  # a document of the source is new
                source = self.folder.parent / f"{self.folder.name}-{name}.jsonl"
                source.write_text(json.dumps({key: value for key, value in document(name).items() if key != "op"}))
                corpus = (self.folder.parent / "abc.jsonl", source)
                made = Chunk(corpus=corpus, tokenizer=str(self.model.path / "tokenizer"), workers=1)
            elif kind == "embed":
                made = Embed(blocks=self.folder / "blocks", retriever=self.model)
            else:
                made = BuildIndex(embeddings=self.folder / "embeddings", type="exact")
            pause()
            return made.make(self.folder / made.makes)

        def delete() -> object:
            return collect([self.folder], 1, True)

        writer = Writer({"edit": edit, "gc": delete}.get(kind, stage))
        writer.start()
        return writer

    def documents(self) -> set[str]:
        """The documents of the newest blocks."""
        return {block.document for block in Corpus(open_artifact(self.folder / "blocks"))}

    def check(self, kinds: Sequence[str], writers: Sequence[Writer], documents: Collection[str] = ()) -> None:
        """Every writer that was told that it is done is seen, the others left nothing, and what is served is whole.

        documents: What the newest blocks hold, where a writer before these was killed.
        """
        done = set()
        for number, (kind, writer) in enumerate(zip(kinds, writers, strict=True)):
            if writer.error is not None:
                assert isinstance(writer.error, LockedError), repr(writer.error)
            elif kind in ("edit", "revise", "chunk"):
                done.add(f"new{number}")
            elif isinstance(writer.made, Artifact):
                assert verify(writer.made)
        found = self.documents()
        if kinds.count("chunk") > 1:  # the source of the last one counts
            found |= {f"new{number}" for number, kind in enumerate(kinds) if kind == "chunk"} & done
        assert found == (set(documents) or {"a", "b", "c"} | done)
        if "gc" not in kinds and not documents:
            assert len(version_numbers(self.folder / "blocks")) == 2 + len(done)
        served = self.server.newest()
        assert served.index is not None and verify(served.blocks) and verify(served.index)
        assert served.index.lineage["blocks"] == served.blocks.content
        if not {"revise", "chunk"} & set(kinds):  # an edit brings its index
            assert served.blocks.path == open_artifact(self.folder / "blocks").path
        left = {path.name for path in self.folder.glob("*/*")}
        assert not any("realmctl-" in name or name.endswith((".partial", ".deleted")) for name in left)


def run(made_once: Path, folder: Path, kinds: Sequence[str], prefix: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Run a schedule that begins with `prefix`. Return its choices, each with the writers that could have gone on."""
    workspace = Workspace(made_once, folder)
    writers = [workspace.writer(kind, f"new{number}") for number, kind in enumerate(kinds)]
    trace = list[tuple[int, list[int]]]()
    while alive := [number for number, writer in enumerate(writers) if not writer.ended]:
        chosen = prefix[len(trace)] if len(trace) < len(prefix) else alive[0]
        trace.append((chosen, alive))
        writers[chosen].step()
    workspace.check(kinds, writers)
    shutil.rmtree(folder)
    return trace


def schedules(made_once: Path, folder: Path, kinds: Sequence[str]) -> Iterator[Sequence[int]]:
    """Run every interleaving of these writers."""
    open_prefixes: list[list[int]] = [[]]
    while open_prefixes:
        prefix = open_prefixes.pop()
        trace = run(made_once, folder, kinds, prefix)
        choices = [chosen for chosen, _ in trace]
        for place in range(len(prefix), len(trace)):
            open_prefixes += [[*choices[:place], other] for other in trace[place][1] if other != choices[place]]
        yield choices


@pytest.mark.parametrize("kinds", list(combinations_with_replacement(KINDS, 2)), ids="+".join)
def test_no_interleaving_of_two_writers_loses_anything(made_once, pauses, tmp_path, kinds):
    if not counting() and kinds in ALONE:
        return
    most = None if counting() or kinds in PAIRS_OF_EDITS else 3
    tried = {tuple(choices) for choices in islice(schedules(made_once, tmp_path / "w", kinds), most)}
    assert len(tried) >= 3
    count("interleavings of two writers (edit, revise, chunk, embed, build-index, gc)", len(tried))


@pytest.mark.parametrize(
    "third", [pytest.param(kind, marks=() if kind in ("edit", "build-index") else pytest.mark.slow) for kind in KINDS]
)
def test_no_interleaving_of_three_writers_loses_anything(made_once, pauses, tmp_path, third):
    """Two servers, or a server and `revise`, beside each other writer: with several rounds every order, else a few."""
    tried = 0
    for kinds in (("edit", "edit", third), ("edit", "revise", third)):
        for _ in zip(range(20 * (rounds() - 1) or 2), schedules(made_once, tmp_path / "w", kinds), strict=False):
            tried += 1
    count("interleavings of three writers", tried)


def test_an_edit_killed_at_any_rename_loses_nothing(made_once, tmp_path):
    """SIGKILL before each rename, and so after the one before it. The next server and the next edit go on from whole versions."""
    kills = 0
    while True:
        workspace = Workspace(made_once, tmp_path / "w")
        served = workspace.server.newest()
        code = ended(forked(partial(edit_until_rename, workspace, served, kills), tmp_path / "log"), 60)
        assert code in (0, -signal.SIGKILL), (tmp_path / "log").read_text()
        killed = workspace.server.newest()
        assert killed.index is not None and verify(killed.blocks) and verify(killed.index)
        assert killed.index.lineage["blocks"] == killed.blocks.content
        had = workspace.documents()
        assert had in ({"a", "b", "c"}, {"a", "b", "c", "first"})
        assert killed.blocks.path == open_artifact(workspace.folder / "blocks").path
        second = workspace.writer("edit", "second")
        second.step()
        second.step()
        workspace.check(["edit"], [second], had | {"second"})
        assert {child.error for child in listing(workspace.folder)} == {""}
        assert collect([workspace.folder], 1, True).gone
        assert workspace.documents() == had | {"second"}
        shutil.rmtree(tmp_path / "w")
        if code == 0:
            break
        kills += 1 if rounds() > 1 else 4
    count("SIGKILL between the renames of an edit", kills)


def edit_until_rename(workspace: Workspace, served: ServedVersion, number: int) -> None:
    """Make an edit in a process that kills itself before the rename of this number."""
    left = iter(range(number))

    def paused(call: Callable[..., None]) -> Callable[..., None]:
        def rename(*arguments: object) -> None:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            call(*arguments)

        return rename

    os.rename, os.replace = paused(os.rename), paused(os.replace)
    workspace.server.edit(served, [document("first")])


def document(name: str) -> dict[str, str]:
    """The edit that adds a document."""
    return {"op": "add", "id": name, "title": name, "text": f"{name} was born in Velford."}


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("import", marks=pytest.mark.slow),
        "chunk",
        pytest.param("embed", marks=pytest.mark.slow),
        "build-index",
    ],
)
def test_an_edit_while_index_docs_runs_stays_or_is_refused(chain, tmp_path, monkeypatch, before):
    """The edit comes before a step of it. What the edit was told is done is in the newest blocks, and they have their index."""
    encoder, notes, w = folder_for(chain.blocks, tmp_path / "encoder"), tmp_path / "notes", tmp_path / "w"
    notes.mkdir()
    (notes / "a.txt").write_text("Ada Lorn was born in Harrow.")
    given = {"documents": str(notes), "language": "en", "bad_files": "fail", "max_wordpieces": "32"}
    run_shipped("index-docs", w, str(encoder), given)
    server = Versions(
        blocks=w / "blocks", embeddings=w / "embeddings", indexes=w / "index", qa_model=None, model=w / "retriever"
    )
    served, edited = server.newest(), list[bool]()
    (notes / "b.txt").write_text("Ben Mott lives in Velford.")
    make_in = Stage.make_in

    def edit_first(stage: Stage, where: Path) -> Artifact:
        if stage.command() == before and where.parent == w and not edited:
            edited.append(False)
            try:
                server.edit(served, [document("new")])
                edited[0] = True
            except LockedError:
                pass
        return make_in(stage, where)

    monkeypatch.setattr(Stage, "make_in", edit_first)
    if before == "import":
        server.edit(served, [document("new")])
        edited.append(True)
    run_shipped("index-docs", w, str(encoder), given)
    newest = server.newest()
    documents = {block.document for block in Corpus(newest.blocks)}
    assert newest.blocks.path == open_artifact(w / "blocks").path and len(edited) == 1
    assert documents == {"a.txt", "b.txt", *(["new"] if edited[0] else [])}
    assert edited[0] == (before in ("import", "chunk"))
