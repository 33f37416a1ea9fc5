"""A service answers from one version at a time, accepts one edit at a time, and survives an edit that fails."""

from __future__ import annotations

import errno
import shutil
import threading
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact
from realmctl.errors import AccessError, InputError, LockedError, ResourceError
from realmctl.extras.serve.messages import Ask, LeaveOut, NewDocument, NewText, Search
from realmctl.extras.serve.models import Models
from realmctl.extras.serve.service import UnknownBlock
from realmctl.extras.serve.versions import Versions
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.revise import Revise
from tests.extras.serve.conftest import QUESTION, series
from tests.fixtures.chain import make_index
from tests.fixtures.retriever import FixtureRetriever

PATIENCE = 30


@pytest.fixture
def service(open_service):
    return open_service()


def test_no_reply_is_of_two_versions(service, monkeypatch):
    """The version changes while a batch is computed: its reply is of the version with which it began."""
    entered, go_on, plain = threading.Event(), threading.Event(), Models.ask

    def slow(models, asked):
        entered.set()
        assert go_on.wait(PATIENCE)
        return plain(models, asked)

    before = service.models.version.name
    monkeypatch.setattr(Models, "ask", slow)
    reply = service.ask(Ask(question=QUESTION))
    assert entered.wait(PATIENCE)
    first = service.block("d0-0").document_blocks[0]
    made = service.replace(first, NewText(text="Ada Lorn was born in Nowhere.", version=before)).result(PATIENCE)
    go_on.set()
    late = reply.result(PATIENCE)
    assert late.version == before != made.version
    assert all("Nowhere" not in candidate.text for candidate in late.candidates)
    assert service.ask(Ask(question=QUESTION)).result(PATIENCE).version == made.version


def test_a_second_edit_at_the_same_time_is_refused(service, monkeypatch):
    entered, go_on, plain = threading.Event(), threading.Event(), Versions.edit

    def slow(self, version, edits):
        entered.set()
        assert go_on.wait(PATIENCE)
        return plain(self, version, edits)

    monkeypatch.setattr(Versions, "edit", slow)
    one = service.remove("d1-0", None)
    assert entered.wait(PATIENCE) and service.status().editing
    with pytest.raises(LockedError, match="edit"):
        service.remove("d2-0", None)
    assert service.ask(Ask(question=QUESTION)).result(PATIENCE).version.startswith("v1-")  # answers go on
    go_on.set()
    assert one.result(PATIENCE).version.startswith("v2-") and not service.status().editing


def test_an_edit_waits_while_a_version_of_another_run_is_opened(service, workspace, monkeypatch):
    service.versions.edit(service.models.version, [{"op": "remove", "id": "d7"}])
    entered, go_on, plain = threading.Event(), threading.Event(), Versions.newest

    def slow(self):
        entered.set()
        assert go_on.wait(PATIENCE)
        return plain(self)

    def newest(self, version):
        """The version that is served when the edit starts counts as the newest: another run may write one just after."""

    with monkeypatch.context() as patch:
        patch.setattr(Versions, "newest", slow)
        patch.setattr(Versions, "require_newest", newest)
        looking = threading.Thread(target=service.follow)
        looking.start()
        assert entered.wait(PATIENCE)
        made = service.remove("d1-0", None)
        assert service.status().editing and not made.done()
    go_on.set()
    looking.join(PATIENCE)
    assert made.result(PATIENCE).version.startswith("v3-") and "d7-0" not in service.models.row_of


def test_an_edit_that_fails_is_told_and_the_former_version_is_served(service, monkeypatch):
    before = service.models

    def full(self, version, edits):
        raise ResourceError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Versions, "edit", full)
        with pytest.raises(ResourceError):
            service.remove("d1-0", None).result(PATIENCE)
    assert service.models is before and not service.status().editing
    assert service.remove("d1-0", None).result(PATIENCE).version == service.models.version.name


def test_another_process_wrote_a_version(service, workspace):
    service.versions.edit(
        service.models.version, [{"op": "remove", "id": "d7"}]
    )  # as another server, or the command line
    with pytest.raises(LockedError, match="v2"):
        service.remove("d1-0", None)
    assert service.block("d7-0").version.startswith("v1-")  # what is served is still whole
    assert service.follow() and not service.follow()
    with pytest.raises(UnknownBlock):
        service.block("d7-0")
    assert service.ask(Ask(question=QUESTION)).result(PATIENCE).version.startswith("v2-")
    with pytest.raises(LockedError, match="v2"):
        service.remove("d1-0", "v1-000000000000")
    assert service.remove("d1-0", None).result(PATIENCE).version.startswith("v3-")


def test_a_newer_index_of_the_same_blocks_is_followed(open_service, workspace):
    service = open_service(qa_model=None, model=None, retriever=workspace / "retriever")
    index = open_artifact(workspace / "index")
    BuildIndex(embeddings=workspace / "embeddings", type="int8").make(workspace / "index")
    assert service.status().index_type == index.settings["type"]
    assert service.follow() and service.status().index_type == "int8" and not service.follow()


def test_a_newer_model_is_told_and_needs_a_restart(service, workspace, capsys):
    assert service.status().newer_models == []
    shutil.copytree(workspace / "qa-model" / "v1", workspace / "qa-model" / "v2")
    before = service.models
    assert service.newer_models() == service.status().newer_models == ["qa-model v2"] and service.models is before
    assert capsys.readouterr().err.count("qa-model v2 is newer") == 1


def test_an_index_of_another_encoder_and_a_first_model_are_told_too(open_service, workspace, tmp_path, capsys):
    """As `index-docs --encoder OTHER` makes it beside a server, and a first `finetune`."""
    qa_model = (workspace / "qa-model").rename(tmp_path / "qa-model")
    searching = {"qa_model": None, "model": None, "later": (workspace / "qa-model",)}
    dense = open_service(**searching, retriever=workspace / "retriever")
    words = open_service(**{**searching, "later": (workspace / "other",)})
    assert dense.newer_models() == words.newer_models() == []
    blocks = open_artifact(workspace / "blocks")
    make_index(workspace, blocks, FixtureRetriever(blocks=blocks, seed=9).make(workspace / "retriever"))
    make_index(workspace / "other", blocks, FixtureRetriever(blocks=blocks, seed=9).make(workspace / "retriever"))
    shutil.copytree(workspace / "index", workspace / "other", dirs_exist_ok=True)
    qa_model.rename(workspace / "qa-model")
    dense.follow()
    assert dense.newer_models() == ["retriever v2", "qa-model v1"] and words.newer_models() == ["other v2"]
    assert dense.status().newer_models and dense.search(Search(query=QUESTION)).result(PATIENCE).hits
    assert "retriever v2 is newer" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["blocks", "index", "qa-model"])
def test_a_pin_whose_version_is_gone_is_told_once_and_followed_when_it_is_mended(service, workspace, kind, capsys):
    (workspace / kind / ".pinned").write_text("v9\n")
    for _ in range(3):
        assert not service.follow() and service.newer_models() == service.status().newer_models == []
    assert capsys.readouterr().err.count("v9") == 1
    (workspace / kind / ".pinned").unlink()
    edits = workspace / "edits.jsonl"
    edits.write_text('{"op": "remove", "id": "d7"}')
    blocks = Revise(blocks=workspace / "blocks", edits=edits, workers=1).make(workspace / "blocks")
    make_index(workspace, blocks, open_artifact(workspace / "model").part("retriever"))
    assert service.follow() and "d7-0" not in service.models.row_of


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ResourceError("no memory"), True),
        (AccessError("no access"), True),
        (OSError(errno.EMFILE, "too many open files"), True),
        (OSError(errno.ESTALE, "stale file handle"), True),
        (InputError("damaged"), False),
    ],
    ids=["memory", "access", "handles", "network file system", "damage"],
)
@pytest.mark.parametrize("what", ["held", "newest"])
def test_a_look_that_fails_is_made_again_unless_something_is_damaged(service, monkeypatch, capsys, error, again, what):
    def fails(self):
        raise error

    service.versions.edit(service.models.version, [{"op": "remove", "id": "d7"}])
    with monkeypatch.context() as patch:
        patch.setattr(Versions, what, fails)
        assert not service.follow()
    assert "is still served" in capsys.readouterr().err
    assert service.follow() == (again or what == "held") and not service.status().editing


def test_blocks_that_have_no_index_yet_are_newer_all_the_same(service, workspace):
    """As after `realmctl revise` beside the server: the edit would leave behind what it changed."""
    edits = workspace / "edits.jsonl"
    edits.write_text('{"op": "remove", "id": "d7"}')
    revised = Revise(blocks=workspace / "blocks", edits=edits, workers=1).make(workspace / "blocks")
    with pytest.raises(LockedError, match="v2"):
        service.replace("d1-0", NewText(text="Nothing.", version=service.models.version.name))
    assert not service.follow() and service.block("d7-0").version.startswith("v1-")
    assert open_artifact(workspace / "blocks").path == revised.path


def test_two_servers_of_one_workspace(open_service):
    one, other = open_service(), open_service()
    version = one.models.version.name
    made = one.replace("d1-0", NewText(text="Ben Mott is away.", version=version)).result(PATIENCE)
    with pytest.raises(LockedError, match="v2"):
        other.replace("d2-0", NewText(text="Cora Nash is away.", version=version))
    restarted = open_service()
    assert restarted.models.version.name == made.version
    assert restarted.replace("d2-0", NewText(text="Cora Nash is away.", version=made.version)).result(PATIENCE)
    assert "away" in restarted.block("d1-0").text and "away" in restarted.block("d2-0").text


def test_file_handles_do_not_grow_with_edits(service):
    counts = []
    for number in range(6):
        service.replace("d1-0", NewText(text=f"Ben Mott is away {number}.")).result(PATIENCE)
        service.ask(Ask(question=QUESTION)).result(PATIENCE)
        counts.append(len([*Path("/proc/self/fd").iterdir()]))
    assert max(counts[2:]) <= counts[1]


def test_one_block_of_a_document_is_replaced_or_removed(service):
    block = service.block("d3-0")
    assert block.document_blocks == ["d3-0", "d3-1"]
    other = service.block("d3-1").text
    made = service.replace("d3-0", NewText(text="Ada Ould is away.")).result(PATIENCE)
    texts = " ".join(service.block(name).text for name in made.document_blocks)
    assert texts == f"Ada Ould is away. {other}"
    service.remove("d3-0", None).result(PATIENCE)
    while "d3-0" in service.models.row_of:
        service.remove("d3-0", None).result(PATIENCE)
    with pytest.raises(UnknownBlock):
        service.block("d3-0")


def test_the_lines_of_a_document_stay_when_a_block_of_it_is_edited(made_chain, open_service, tmp_path):
    page, retriever = tmp_path / "list.md", made_chain.retriever
    page.write_text("# Towns\n\n" + "".join(f"- The town of Ashby has {n} old houses.\n" for n in range(8)))
    blocks = Chunk(
        corpus=(page,), tokenizer=str(made_chain.blocks.path / "tokenizer"), max_wordpieces=48, workers=1
    ).make(tmp_path / "w" / "blocks")
    make_index(tmp_path / "w", blocks, retriever)
    service = open_service(qa_model=None, model=None, retriever=retriever.path, **series(tmp_path / "w"))
    first, *others = [block.id for block in service.models.corpus]
    assert others
    made = service.replace(first, NewText(text="- Ashby is a town.\n- Velford is another.")).result(PATIENCE)
    text = "\n".join(service.block(name).text for name in made.document_blocks)
    assert text.splitlines()[:2] == ["- Ashby is a town.", "- Velford is another."]
    assert all(line.startswith("- ") and line.endswith(".") for line in text.splitlines())


def test_an_added_document_is_found_and_left_out(service):
    added = service.add(NewDocument(id="new", title="Zed", text="Zed Quill was born in Velford.")).result(PATIENCE)
    assert added.embedded == len(added.document_blocks) == 1
    assert service.block("new-0").title == "Zed"
    left_out = service.leave_out(LeaveOut(question=QUESTION, without=["new-0"])).result(PATIENCE)
    assert left_out.left_out == ["new-0"]


def test_the_status_counts(open_service):
    service = open_service(edits=False)
    for _ in range(3):
        service.ask(Ask(question=QUESTION)).result(PATIENCE)
    status = service.status()
    assert status.latency["ask"].requests == 3 and status.latency["ask"].p95_ms >= status.latency["ask"].p50_ms > 0
    assert status.blocks == len(service.models.corpus) and status.index_type == "exact" and status.can_ask
    assert status.refused == 0 and not status.edits_allowed
