"""A folder is the source and a page edits: what was edited stays when the folder is read again, and what cannot is named."""

from __future__ import annotations

import json

import pytest

from realmctl.artifacts import open_artifact, version_numbers
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.kept_edits import KeptEdits
from stages.chunk import Chunk
from stages.revise import Revise


@pytest.fixture
def folder(tmp_path):
    """A folder of documents, and its blocks in the series `w/blocks`."""
    made = tmp_path / "notes"
    made.mkdir()
    for name in "abc":
        (made / f"{name}.txt").write_text(f"The document {name} is as it was.")
    chunk(made)
    return made


def chunk(folder, tokenizer="train:200"):
    cut = Chunk(corpus=(folder,), tokenizer=tokenizer, max_wordpieces=32, workers=1)
    return cut.make(folder.parent / "w/blocks")


def revise(folder, *edits):
    path, series = folder.parent / "edits.jsonl", folder.parent / "w/blocks"
    path.write_text("".join(f"{json.dumps(edit)}\n" for edit in edits))
    return Revise(blocks=series, edits=path, workers=1).make(series)


def texts(blocks):
    return {block.document: block.text for block in Corpus(blocks)}


UPDATE = {"op": "update", "id": "a.txt", "text": "It is edited now."}
REMOVE = {"op": "remove", "id": "b.txt"}
ADD = {"op": "add", "id": "new", "title": "New", "text": "It was added by hand."}


def test_edits_stay_when_the_folder_changes_beside_them(folder, capsys):
    revise(folder, UPDATE)
    revise(folder, REMOVE, ADD)
    (folder / "d.txt").write_text("A document more.")
    capsys.readouterr()
    made = chunk(folder)
    assert made.path.name == "v4" and open_artifact(made.path.parent).path == made.path
    wanted = {
        "a.txt": UPDATE["text"],
        "c.txt": "The document c is as it was.",
        "d.txt": "A document more.",
        "new": ADD["text"],
    }
    told = capsys.readouterr().err
    assert texts(made) == wanted and "are kept: a.txt, new, b.txt" in told and "warning" not in told
    assert chunk(folder).path == made.path and version_numbers(made.path.parent) == [1, 2, 3, 4]
    (folder / "d.txt").unlink()
    again = chunk(folder)
    assert texts(again) == {name: text for name, text in wanted.items() if name != "d.txt"}
    assert revise(folder, {"op": "remove", "id": "new"}).path.name == "v6"
    (folder / "e.txt").write_text("Another.")
    assert set(texts(chunk(folder))) == {"a.txt", "c.txt", "e.txt"}


def test_blocks_that_are_edited_stay_the_newest_while_their_folder_is_unchanged(folder, capsys):
    edited = revise(folder, UPDATE)
    assert chunk(folder).path == edited.path == open_artifact(edited.path.parent).path
    undone = revise(folder, {"op": "update", "id": "a.txt", "text": "The document a is as it was."})
    assert KeptEdits.of(undone) is None and undone.content == open_artifact(edited.path.parent / "v1").content
    assert chunk(folder).content == undone.content


def test_what_changed_in_both_places_is_named(folder, capsys):
    former = revise(folder, UPDATE, REMOVE, {"op": "update", "id": "c.txt", "text": "This text is edited too."})
    (folder / "a.txt").write_text("The source says another thing.")
    (folder / "b.txt").write_text("The source says a new thing.")
    (folder / "c.txt").unlink()
    capsys.readouterr()
    made = chunk(folder)
    told = capsys.readouterr().err
    assert texts(made) == {"a.txt": UPDATE["text"], "b.txt": "The source says a new thing."}
    assert "warning: a.txt: these documents were edited, and their source changed too. The edit stays." in told
    assert (
        "warning: b.txt: these documents were deleted by an edit, and their source changed since. They are back."
        in told
    )
    assert (
        f"warning: c.txt: these documents were edited, and their source is deleted. They are gone; {former.path}"
        in told
    )
    (folder / "d.txt").write_text("A document more.")
    chunk(folder)
    assert "warning" not in capsys.readouterr().err  # each is told once


def test_an_edit_that_the_source_took_over_is_none_any_more(folder):
    revise(folder, UPDATE)
    (folder / "a.txt").write_text(UPDATE["text"])
    made = chunk(folder)
    plain = Chunk(corpus=(folder,), tokenizer="train:200", max_wordpieces=32, workers=1).make(folder.parent / "plain")
    assert KeptEdits.of(made) is None and made.content == plain.content and made.recipe == plain.recipe


def test_a_folder_as_it_was_before_has_the_edits_that_were_made_since(folder):
    (folder / "d.txt").write_text("A document more.")
    chunk(folder)
    revise(folder, UPDATE)
    (folder / "d.txt").unlink()
    assert texts(chunk(folder)) == {
        "a.txt": UPDATE["text"],
        **{f"{n}.txt": f"The document {n} is as it was." for n in "bc"},
    }


def test_the_whole_corpus_leaves_the_edits_out_and_names_them(folder, capsys):
    revise(folder, UPDATE)
    series = folder.parent / "w/blocks"
    made = Revise(blocks=series, corpus=(folder,), workers=1).make(series)
    assert "left out" in capsys.readouterr().err and KeptEdits.of(made) is None
    (folder / "d.txt").write_text("A document more.")
    assert texts(chunk(folder))["a.txt"] == "The document a is as it was."


def test_edits_stay_under_other_settings_of_chunk(folder):
    revise(folder, UPDATE, REMOVE)
    made = chunk(folder, "train:150")
    assert texts(made) == {"a.txt": UPDATE["text"], "c.txt": "The document c is as it was."}


@pytest.mark.house
def test_fields_of_edits_are_kept_with_them(folder):
    def fields(blocks):
        return {block.document: block.fields for block in Corpus(blocks) if block.fields}

    (folder / "m.md").write_text("---\ndate: 2024-01-02\nsource: wiki\n---\nThe document m is as it was.\n")
    chunk(folder)
    given = {"date": "2025-03-04", "tags": ["x"]}
    made = revise(folder, {**ADD, "fields": given}, {**UPDATE, "id": "m.md"})
    wanted = {"new": given, "m.md": {"date": "2024-01-02", "source": "wiki"}}
    assert fields(made) == wanted and made.path.name == "v3"
    (folder / "d.txt").write_text("A document more.")
    assert fields(chunk(folder)) == wanted
    made = revise(
        folder, {**UPDATE, "id": "m.md", "fields": {"date": "2026-01-01"}}, {**UPDATE, "id": "new", "fields": {}}
    )
    assert fields(made) == {"m.md": {"date": "2026-01-01"}}
