"""`revise`, and `embed --former` after it: any sequence of edits gives what a rebuild from scratch gives."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from realmctl.artifacts import open_artifact, require_descent, verify
from realmctl.artifacts.catalogue import listing
from realmctl.artifacts.series import locked
from realmctl.cli.app import build
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, LockedError, MismatchError
from realmctl.index.index_type import open_index
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.revise import Revise
from stages.tag import Tag
from tests.fixtures.blocks import make_blocks
from tests.fixtures.retriever import make_retriever

ROOT = Path(__file__).parents[2]
WORDS = ["river", "stone", "lamp", "cloud", "horse", "bread", "music", "winter"]
LENGTH = 32


def text(*numbers):
    return " ".join(f"The {WORDS[n % 8]} was near the {WORDS[n // 8 % 8]} in {1900 + n}." for n in numbers)


DOCUMENTS = {str(n): (f"Title {n % 5}", text(*range(n, n + 1 + n % 4))) for n in range(8)}


def write_corpus(path, documents):
    lines = (json.dumps({"id": key, "title": title, "text": body}) for key, (title, body) in documents.items())
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_passages_keep_their_ids_in_a_revision(tmp_path):
    """`chunk --keep-passages`, then an edit: what a rebuild gives, file by file."""
    corpus = write_corpus(tmp_path / "old.jsonl", {"p-1": ("T", text(1)), "p-2": ("T", text(2))})
    cut = {"tokenizer": "train:200", "max_wordpieces": LENGTH, "workers": 1, "keep_passages": True}
    blocks = Chunk(corpus=(corpus,), **cut).make(tmp_path / "blocks")
    edits = write_edits(tmp_path / "edits", {"op": "add", "id": "p-3", "text": text(3)})
    revised = Revise(blocks=blocks, edits=edits, workers=1).make(tmp_path / "blocks")
    assert [record.id for record in Corpus(revised)] == ["p-1", "p-2", "p-3"]


def test_an_updated_list_keeps_its_lines_and_the_text_of_a_record_has_none(tmp_path):
    row = {"id": "plain.jsonl", "text": "The river\nwas near."}
    pages = {"list.md": "# Towns\n\n- The river.\n- The stone.\n", "plain.jsonl": json.dumps(row)}
    for name, body in pages.items():
        (tmp_path / name).write_text(body)
    cut = {"tokenizer": "train:200", "max_wordpieces": LENGTH, "workers": 1}
    blocks = Chunk(corpus=tuple(tmp_path / name for name in pages), **cut).make(tmp_path / "blocks")
    new = "- The lamp.\n- The cloud.\n- The horse."
    edits = write_edits(tmp_path / "edits", *({"op": "update", "id": name, "text": new} for name in pages))
    revised = Revise(blocks=blocks, edits=edits, workers=1).make(tmp_path / "blocks")
    assert [block.text for block in Corpus(revised)] == [new, new.replace("\n", " ")]


@pytest.mark.house
def test_an_edited_document_keeps_its_sections(tmp_path):
    """A block has the headings that all its former sentences have; a new sentence stands in the section before it."""
    fees = [f"The fee {number} is paid in the harbour by the captain of each ship." for number in range(24)]
    crews = [f"The crew {number} sleeps in the town until the next tide comes in." for number in range(24)]
    page = "\n\n".join(["# Harbour", "Ships come here.", "## Fees", *fees, "## Crews", "### Sleep", *crews])
    (tmp_path / "harbour.md").write_text(page + "\n")
    cut = {"tokenizer": "train:200", "max_wordpieces": 100, "workers": 1}
    blocks = Chunk(corpus=(tmp_path / "harbour.md",), **cut).make(tmp_path / "blocks")
    former = [*Corpus(blocks)]
    assert {block.section for block in former} >= {"Fees", "Crews / Sleep"}
    whole = "\n".join(block.text for block in former)
    boat, nobody = "The fee of a boat is half of that.", "Nobody sleeps then."
    edited = whole.replace(fees[9], f"{fees[9]}\n{boat}").replace(crews[21], nobody)
    edits = write_edits(tmp_path / "edits", {"op": "update", "id": "harbour.md", "text": edited})
    revised = [*Corpus(Revise(blocks=blocks, edits=edits, workers=1).make(tmp_path / "blocks"))]
    found = {
        sentence: block.section
        for block in revised
        for sentence in (fees[9], boat, crews[20], nobody)
        if sentence in block.text
    }
    assert found == {fees[9]: "Fees", boat: "Fees", crews[20]: "Crews / Sleep", nobody: "Crews / Sleep"}
    assert not any(block.section for block in revised if fees[23] in block.text and crews[0] in block.text)


def test_the_blocks_are_an_argument_or_an_option_and_not_both(tmp_path):
    blocks = make_blocks(tmp_path / "blocks", {"Lamp": [["The stone lamp."]]})
    edits = write_edits(tmp_path / "edits", {"op": "remove", "id": "no-such-document"})

    def revise(*arguments):
        return CliRunner().invoke(build("revise"), ["revise", *map(str, arguments), "--edits", str(edits)])

    for named in (revise(blocks.path), revise("--blocks", blocks.path)):
        assert named.exit_code == 4, named.output
    both = revise(blocks.path, "--blocks", blocks.path)
    assert both.exit_code == 2 and "Give one of them" in both.output


def test_a_revision_does_not_import_torch(tmp_path):
    """torch and transformers take several seconds to import, which is more than a small revision takes."""
    corpus = write_corpus(tmp_path / "old.jsonl", DOCUMENTS)
    blocks = Chunk(corpus=(corpus,), tokenizer="train:200", max_wordpieces=LENGTH, workers=1).make(tmp_path / "blocks")
    write_edits(tmp_path / "edits", {"op": "remove", "id": "3"})
    code = (
        "import sys; from pathlib import Path; from realmctl.artifacts import open_artifact; from stages.revise import Revise\n"
        f"Revise(blocks=open_artifact({str(blocks.path)!r}), edits=Path('edits'), workers=1).make(Path('blocks'))\n"
        "print(*sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == ""


def test_named_columns_are_named_in_a_revision_too(tmp_path):
    """`chunk --text-field`, then a larger table: the names come from the blocks, through two revisions."""
    corpus, rows = tmp_path / "news.csv", [f"{number},T{number},{text(number)}" for number in range(3)]
    corpus.write_text("\n".join(["key,headline,story", *rows[:1]]))
    names = {"id_field": "key", "title_field": "headline", "text_field": "story"}
    blocks = Chunk(corpus=(corpus,), tokenizer="train:200", workers=1, **names).make(tmp_path / "blocks")
    for count in (2, 3):
        corpus.write_text("\n".join(["key,headline,story", *rows[:count]]))
        blocks = Revise(blocks=blocks, corpus=(corpus,), workers=1).make(tmp_path / "blocks")
        found = [(record.document, record.title) for record in Corpus(blocks)]
        assert found == [(str(number), f"T{number}") for number in range(count)]


def write_edits(path, *edits):
    path.write_text("".join(f"{json.dumps(edit)}\n" for edit in edits))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(blocks, retriever, embeddings): blocks of eight documents, and their vectors."""
    folder = tmp_path_factory.mktemp("w")
    corpus = write_corpus(folder / "corpus.jsonl", DOCUMENTS)
    blocks = Chunk(corpus=(corpus,), tokenizer="train:200", max_wordpieces=LENGTH, workers=1).make(folder / "blocks")
    retriever = make_retriever(folder / "retriever", blocks)
    return blocks, retriever, embed(blocks, retriever, folder)


def embed(blocks, retriever, folder, **values):
    # One block at a time: the rounding of a vector then depends on nothing but its block.
    return Embed(blocks=blocks, retriever=retriever, precision="fp32", device="cpu", batch_size=1, **values).make(
        folder / "embeddings"
    )


def rebuild(blocks, documents, folder):
    corpus = write_corpus(folder / "rebuilt.jsonl", documents)
    return Chunk(corpus=(corpus,), tokenizer=str(blocks.path / "tokenizer"), max_wordpieces=LENGTH, workers=1).make(
        folder / "rebuilt"
    )


def apply(documents, edit):
    """The oracle: what an edit does to a dictionary of documents."""
    key = edit["id"]
    if edit["op"] == "remove":
        del documents[key]
    else:
        documents[key] = (edit.get("title", documents.get(key, ("",))[0]), edit["text"])


@st.composite
def edit_sequences(draw):
    """One to three revisions of one to four edits each, that leave at least one document."""
    documents, revisions = dict(DOCUMENTS), []
    texts = st.lists(st.integers(0, 60), min_size=1, max_size=6).map(lambda numbers: text(*numbers))
    for _ in range(draw(st.integers(1, 3))):
        edits = []
        for _ in range(draw(st.integers(1, 4))):
            op = draw(st.sampled_from(["add", "update", "remove"] if len(documents) > 1 else ["add", "update"]))
            if op == "add":
                key = draw(st.sampled_from([k for k in map(str, range(20)) if k not in documents]))
            else:
                key = draw(st.sampled_from(list(documents)))
            edit = {"op": op, "id": key}
            if op != "remove":
                edit["text"] = draw(texts)
                edit |= draw(st.sampled_from([{}, {"title": "Title 1"}, {"title": "Another"}]))
            apply(documents, edit)
            edits.append(edit)
        revisions.append(edits)
    return revisions


@settings(max_examples=5, deadline=None, database=None)
@given(edit_sequences())
def test_any_sequence_of_edits_equals_a_rebuild(made, revisions):
    blocks, retriever, embeddings = made
    documents = dict(DOCUMENTS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, edits in enumerate(revisions):
            former = blocks
            path = write_edits(folder / f"edits-{number}.jsonl", *edits)
            blocks = Revise(blocks=former, edits=path, workers=1).make(folder / "blocks")
            embeddings = embed(blocks, retriever, folder, former=embeddings, former_blocks=former)
            for edit in edits:
                apply(documents, edit)
        scratch = rebuild(blocks, documents, folder)
        assert blocks.content == scratch.content  # the same bytes in every file, so the same ids and rows
        vectors = embed(scratch, retriever, folder / "scratch")
        assert embeddings.content == vectors.content
        ours, theirs = (
            open_index(BuildIndex(embeddings=each, type="exact").make(folder / f"index-{n}").path)
            for n, each in enumerate((embeddings, vectors))
        )
        queries = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
        for one, other in zip(ours.search(queries, 5), theirs.search(queries, 5), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_new_corpus_equals_chunk_and_is_described(made, tmp_path):
    blocks, *_ = made
    documents = {**DOCUMENTS, "3": ("Title 3", text(50)), "new": ("N", text(51))}
    del documents["5"]
    corpus = write_corpus(tmp_path / "corpus.jsonl", documents)
    revised = Revise(blocks=blocks, corpus=(corpus,), workers=1).make(tmp_path / "blocks")
    assert revised.content == rebuild(blocks, documents, tmp_path).content
    counts = [revised.metrics[f"documents_{what}"] for what in ("added", "changed", "removed")]
    assert counts == [1, 1, 1] and revised.metrics["documents"] == 8
    old = {(r.title, r.text) for r in Corpus(blocks)}
    assert revised.metrics["blocks_kept"] == sum((r.title, r.text) in old for r in Corpus(revised))
    assert revised.lineage["blocks"] == blocks.content
    assert Corpus(revised).max_wordpieces == LENGTH


def test_back_again_is_the_first_version(made, tmp_path):
    blocks, retriever, embeddings = made
    there = Revise(
        blocks=blocks, workers=1, edits=write_edits(tmp_path / "1.jsonl", {"op": "update", "id": "2", "text": text(9)})
    ).make(tmp_path / "blocks")
    old = {"op": "update", "id": "2", "text": DOCUMENTS["2"][1]}
    back = Revise(blocks=there, workers=1, edits=write_edits(tmp_path / "2.jsonl", old)).make(tmp_path / "blocks")
    assert back.content == blocks.content != there.content
    again = embed(back, retriever, tmp_path, former=embeddings)
    assert (again.metrics["taken_over"], again.metrics["embedded"]) == (len(Corpus(blocks)), 0)


def test_an_edit_that_is_made_undone_and_made_again_is_a_new_version_each_time(made, tmp_path):
    """The second time has the recipe of the first: the version of the first time is not the newest, and not what is meant."""
    series = Path(shutil.copytree(made[0].path.parent, tmp_path / "blocks"))
    there, back = (
        write_edits(tmp_path / f"{number}.jsonl", {"op": "update", "id": "2", "text": new})
        for number, new in enumerate((text(9), DOCUMENTS["2"][1]))
    )
    contents = [open_artifact(series).content]
    for edits in (there, back, there, back):
        made_now = Revise(blocks=series, edits=edits, workers=1).make(series)
        assert open_artifact(series).path == made_now.path
        contents.append(made_now.content)
    assert contents[0] == contents[2] == contents[4] != contents[1] == contents[3]


def test_blocks_that_were_the_newest_and_no_longer_are(made, tmp_path, capsys):
    """By the name of the series one means its newest version. A version that is named is revised, with a warning."""
    series = Path(shutil.copytree(made[0].path.parent, tmp_path / "blocks"))
    first = open_artifact(series)
    adds = [
        write_edits(tmp_path / f"{name}.jsonl", {"op": "add", "id": name, "title": name, "text": text(9)})
        for name in ("x", "y")
    ]
    one, other = (Revise(blocks=series, edits=each, workers=1) for each in adds)
    newest = one.make(series)
    with pytest.raises(LockedError, match=newest.path.name):
        other.make(series)
    assert open_artifact(series).path == newest.path
    branch = Revise(blocks=series / first.path.name, edits=adds[1], workers=1).make(series)
    assert "not the newest" in capsys.readouterr().err
    assert {block.document for block in Corpus(branch)} == {*DOCUMENTS, "y"}


def test_only_changed_blocks_are_embedded(made, tmp_path, monkeypatch):
    from realmctl.retrieval.embedding import embedding

    blocks, retriever, embeddings = made
    edits = write_edits(
        tmp_path / "e.jsonl", {"op": "remove", "id": "0"}, {"op": "add", "id": "new", "title": "N", "text": text(33)}
    )
    revised = Revise(blocks=blocks, edits=edits, workers=1).make(tmp_path / "blocks")
    asked = []
    plain = embedding.embed_titles_and_bodies
    monkeypatch.setattr(
        embedding,
        "embed_titles_and_bodies",
        lambda r, c, titles, bodies, **rest: asked.extend(bodies) or plain(r, c, titles, bodies, **rest),
    )
    made_now = embed(revised, retriever, tmp_path, former=embeddings, former_blocks=blocks)
    assert len(asked) == 1 == made_now.metrics["embedded"]
    assert made_now.metrics["taken_over"] == len(Corpus(revised)) - 1
    assert made_now.lineage["blocks"] == revised.content
    assert "embeddings" not in made_now.lineage  # whose vectors were taken over, and which are not needed any more


def test_batches_change_vectors_by_rounding_only(made, tmp_path):
    blocks, retriever, _ = made
    stage = {"retriever": retriever, "precision": "fp32", "device": "cpu"}
    former = Embed(blocks=blocks, **stage).make(tmp_path / "e")
    edits = write_edits(tmp_path / "e.jsonl", {"op": "update", "id": "1", "text": text(20, 21, 22, 23)})
    revised = Revise(blocks=blocks, edits=edits, workers=1).make(tmp_path / "blocks")
    taken = Embed(blocks=revised, former=former, former_blocks=blocks, **stage).make(tmp_path / "e")
    scratch = Embed(blocks=revised, **stage).make(tmp_path / "e")
    ours, theirs = (np.load(each.file("embeddings.npy"), allow_pickle=False) for each in (taken, scratch))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_the_former_blocks_are_found_in_the_series(made, tmp_path):
    blocks, retriever, embeddings = made
    edits = write_edits(tmp_path / "e.jsonl", {"op": "remove", "id": "1"})
    elsewhere = Revise(blocks=blocks, edits=edits, workers=1).make(tmp_path / "blocks")
    with pytest.raises(MismatchError, match="--former-blocks"):
        embed(elsewhere, retriever, tmp_path, former=embeddings)
    beside = Revise(blocks=blocks, edits=edits, workers=1).make(blocks.path.parent)
    assert embed(beside, retriever, tmp_path, former=embeddings).metrics["embedded"] == 0


def test_vectors_that_do_not_fit_are_refused(made, tmp_path):
    blocks, retriever, embeddings = made
    other = make_retriever(tmp_path / "other", blocks, seed=5)
    with pytest.raises(MismatchError, match="another retriever"):
        embed(blocks, other, tmp_path, former=embeddings)
    with pytest.raises(MismatchError, match="float32"):
        embed(blocks, retriever, tmp_path, former=embeddings, dtype="float16")
    with pytest.raises(MismatchError, match="--precision fp32"):
        Embed(blocks=blocks, retriever=retriever, former=embeddings, precision="bf16").make(tmp_path / "e")
    with pytest.raises(ConfigError, match="--former-blocks"):
        embed(blocks, retriever, tmp_path, former_blocks=blocks)
    assert not list(tmp_path.glob("e*/v1"))


def test_blocks_that_cannot_be_revised(made, tmp_path):
    by_hand = make_blocks(tmp_path / "hand", {"A": [["One sentence."]]})
    edits = write_edits(tmp_path / "e.jsonl", {"op": "remove", "id": "0"})
    with pytest.raises(MismatchError, match="chunk or revise"):
        Revise(blocks=by_hand, edits=edits).make(tmp_path / "blocks")
    for given_both in ({}, {"edits": edits, "corpus": (edits,)}):
        with pytest.raises(ConfigError, match="either --corpus"):
            Revise(blocks=made[0], **given_both).make(tmp_path / "blocks")


def refused(made, tmp_path, kind, match, **values):
    with pytest.raises(kind, match=match):
        Revise(blocks=made[0], workers=1, **values).make(made[0].path.parent)
    return sorted(path.name for path in made[0].path.parent.glob("v*"))


def test_nothing_is_half_written(made, tmp_path):
    before = sorted(path.name for path in made[0].path.parent.glob("v*"))
    nothing = write_edits(tmp_path / "1.jsonl", *({"op": "remove", "id": key} for key in DOCUMENTS))
    assert refused(made, tmp_path, InputError, "leave no block", edits=nothing) == before
    absent = write_edits(tmp_path / "2.jsonl", {"op": "update", "id": "1", "text": "x"}, {"op": "remove", "id": "99"})
    assert refused(made, tmp_path, InputError, r"2\.jsonl:2: there is no document", edits=absent) == before
    (tmp_path / "3.jsonl").write_text('{"op": "remove", "id": "1"}\n{oops\n')
    assert refused(made, tmp_path, InputError, r"3\.jsonl:2: not valid JSON", edits=tmp_path / "3.jsonl") == before
    with locked(made[0].path.parent):
        assert refused(made, tmp_path, LockedError, "another run", edits=absent) == before


@pytest.mark.slow
def test_a_killed_revision_leaves_the_old_version(made, tmp_path):
    series = tmp_path / "blocks"
    corpus = write_corpus(tmp_path / "c.jsonl", DOCUMENTS)
    first = Chunk(corpus=(corpus,), tokenizer=str(made[0].path / "tokenizer"), max_wordpieces=LENGTH, workers=1).make(
        series
    )
    edits = write_edits(tmp_path / "e.jsonl", {"op": "remove", "id": "1"})
    program = (
        "import os, signal\n"
        "from realmctl.corpus import blocks_file\n"
        "from stages.revise import Revise\n"
        "plain, calls = blocks_file.BlocksWriter.write, []\n"
        "def killed(self, block):\n"
        "    calls.append(block)\n"
        "    if len(calls) == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    plain(self, block)\n"
        "blocks_file.BlocksWriter.write = killed\n"
        f"Revise(blocks={str(first.path)!r}, edits={str(edits)!r}, workers=1).make({str(series)!r})\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert open_artifact(series).path == first.path
    revised = Revise(blocks=first, edits=edits, workers=1).make(series)
    assert revised.content == rebuild(first, {k: v for k, v in DOCUMENTS.items() if k != "1"}, tmp_path).content


def test_gc_keeps_what_a_model_and_the_newest_version_need_and_not_the_edits_between(tmp_path):
    """Four edits, each of the blocks before and with the vectors of the index before, as `serve` makes them."""
    corpus = write_corpus(tmp_path / "corpus.jsonl", DOCUMENTS)
    w = tmp_path / "w"
    blocks = Chunk(corpus=(corpus,), tokenizer="train:200", max_wordpieces=LENGTH, workers=1).make(w / "blocks")
    retriever = make_retriever(w / "retriever", blocks)
    index = BuildIndex(embeddings=embed(blocks, retriever, w), type="exact").make(w / "index")
    Tag(blocks=blocks, tagger="rules", workers=1).make(w / "spans")
    for number in range(4):
        edits = write_edits(tmp_path / "edits", {"op": "add", "id": f"n{number}", "text": text(number)})
        revised = Revise(blocks=blocks, edits=edits, workers=1).make(w / "blocks")
        embeddings = embed(revised, retriever, w, former=index, former_blocks=blocks)
        assert "index" not in embeddings.lineage
        blocks, index = revised, BuildIndex(embeddings=embeddings, type="exact").make(w / "index")
        del revised, embeddings
    wanted = {
        *(f"{series}/v5" for series in ("blocks", "embeddings", "index")),
        "blocks/v1",
        "retriever/v1",
        "spans/v1",
    }
    del blocks, index, retriever
    gc.collect()  # readers that are garbage would still hold their versions
    collecting = pytest.importorskip("realmctl.extras.gc.collecting")
    collecting.collect([w], 1, delete=True)
    assert {str(version.path.relative_to(w)) for version in listing(w)} == wanted
    newest = open_artifact(w / "index")
    require_descent(
        newest, open_artifact(w / "blocks"), open_artifact(w / "retriever"), open_artifact(w / "embeddings")
    )
    verify(newest)
