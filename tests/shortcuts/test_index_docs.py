"""`realmctl index-docs`: a folder becomes searchable by one command, which makes nothing twice."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex

import numpy as np
import pytest
import yaml

import realmctl as package
from realmctl.artifacts import Origin, open_artifact, version_numbers
from realmctl.artifacts.records import Records
from realmctl.artifacts.series import locked, pin
from realmctl.artifacts.unfinished import new_partial
from realmctl.corpus.settings import language_of
from realmctl.pipeline import pipeline, pipeline_file
from realmctl.pipeline.discovery import own_stages
from realmctl.retrieval.embedding import embedding
from realmctl.retrieval.embedding.embedding_file import EmbeddingFile
from realmctl.shortcuts import shipped
from tests.fixtures.chain import Chain
from tests.fixtures.encoder_folders import folder_for
from tests.fixtures.small_stages import Plain


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("Ada Lorn was born in Harrow. The family was poor.")
    (folder / "deep" / "b.txt").write_text("Ben Mott worked for a firm.")
    return folder


def test_from_a_folder_to_a_search(realmctl, chain: Chain, tmp_path, notes):
    encoder, words = folder_for(chain.blocks, tmp_path / "encoder"), ("index-docs", notes, "--max-wordpieces", 32)
    code, out, err = realmctl(*words, "--encoder", encoder, "--workspace", tmp_path / "my w")
    assert code == 0 and f"realmctl search \"your words\" --workspace '{tmp_path}/my w'" in out, err
    code, out, err = realmctl(*words, "--encoder", encoder, "--workspace", tmp_path / "my w", "--json")
    found = json.loads(out)
    assert code == 0 and (found["documents"], found["blocks"]) == (2, 2)
    assert {path.rpartition("/")[2] for path in found["made"].values()} == {"v1"}
    code, out, err = realmctl("search", "Ada Lorn", "--workspace", tmp_path / "my w", "--json")
    assert code == 0 and {hit["document"] for hit in json.loads(out)["results"][0]["hits"]} == {"a.txt", "deep/b.txt"}


def test_hits_show_the_fields_of_their_documents(realmctl, chain: Chain, tmp_path, notes):
    row = {"id": "c", "text": "Cora Nash sailed to Ashby.", "date": "2024-05-01", "tags": ["sea", "ship"], "other": 1}
    (notes / "rows.jsonl").write_text(json.dumps(row) + "\n")
    encoder, workspace = folder_for(chain.blocks, tmp_path / "encoder"), tmp_path / "w"
    words = ("index-docs", notes, "--encoder", encoder, "-w", workspace, "--keep-fields", "date,tags")
    code, _, err = realmctl(*words)
    assert code == 0, err
    assert open_artifact(workspace / "blocks").metrics["fields"] == {"date": "date", "tags": "list"}
    code, out, err = realmctl("search", "Cora Nash", "-w", workspace, "--json")
    hits = {hit["document"]: (hit["fields"], hit["page"]) for hit in json.loads(out)["results"][0]["hits"]}
    assert hits == {
        "c": ({"date": "2024-05-01", "tags": ["sea", "ship"]}, None),
        "a.txt": ({}, None),
        "deep/b.txt": ({}, None),
    }
    assert "   date 2024-05-01; tags sea, ship\n" in realmctl("search", "Cora Nash", "-w", workspace)[1]


def test_columns_of_other_names_are_named(realmctl, chain: Chain, tmp_path):
    """As what it says of such a table advises."""
    table = tmp_path / "faq.csv"
    table.write_text(
        "key,question,answer\nk1,Who sailed?,Cora Nash sailed to Ashby.\nk2,Who left?,Dora Pell left Harrow.\n"
    )
    encoder, workspace = folder_for(chain.blocks, tmp_path / "encoder"), tmp_path / "w"
    words = ("index-docs", table, "--encoder", encoder, "-w", workspace)
    code, _, err = realmctl(*words)
    assert code == 3 and "Name the column with --text-field" in err and "those of `realmctl chunk`" not in err
    code, _, err = realmctl(*words, "--id-field", "key", "--title-field", "question", "--text-field", "answer")
    assert code == 0, err
    code, out, err = realmctl("search", "Cora Nash", "-w", workspace, "--json")
    hit = json.loads(out)["results"][0]["hits"][0]
    assert (hit["document"], hit["title"], hit["text"]) == ("k1", "Who sailed?", "Cora Nash sailed to Ashby.")


def test_bm25_is_kept_before_the_first_search(realmctl, chain: Chain, tmp_path, notes, monkeypatch):
    monkeypatch.setattr("realmctl.retrieval.search.postings.KEPT_FROM", 1)
    encoder = folder_for(chain.blocks, tmp_path / "encoder")
    for _ in range(2):
        code, _, err = realmctl("index-docs", notes, "--encoder", encoder, "-w", tmp_path / "w")
        assert code == 0 and version_numbers(tmp_path / "w/kept-bm25") == [1], err
    monkeypatch.setattr("realmctl.retrieval.search.postings.Postings.of_text", None)  # a search computes it no more
    assert realmctl("search", "Ada", "-w", tmp_path / "w")[0] == 0


def test_documents_that_are_as_they_were_before_are_searched_again_by_the_command_that_is_printed(
    realmctl, chain: Chain, tmp_path, notes
):
    words = ("index-docs", notes, "--workspace", tmp_path / "w", "--json", "--encoder")
    encoder, former = folder_for(chain.blocks, tmp_path / "encoder"), (notes / "a.txt").read_text()

    def made() -> dict[str, object]:
        code, out, err = realmctl(*words, encoder)
        assert code == 0, err
        return json.loads(out)

    def found(command: str) -> set[str]:
        code, out, err = realmctl(*shlex.split(command)[1:], "--method", "dense", "--json")
        assert code == 0, err
        return {hit["text"] for hit in json.loads(out)["results"][0]["hits"]}

    first = made()
    assert former in found(first["search"])
    (notes / "a.txt").write_text("Cleo Dunn sailed to Ashby.")
    assert "Cleo Dunn sailed to Ashby." in found(made()["search"])
    (notes / "a.txt").write_text(former)
    again = made()
    assert again["made"] == first["made"] and former in found(again["search"])
    pin(open_artifact(first["made"]["index"]))
    (notes / "a.txt").write_text("Dora Pell left Harrow.")
    assert "Dora Pell left Harrow." in found(made()["search"])


def test_in_the_folder_itself_the_workspace_is_no_document(realmctl, chain: Chain, tmp_path, notes, monkeypatch):
    encoder = folder_for(chain.blocks, tmp_path / "encoder")
    monkeypatch.chdir(notes)
    for text in ("Ada Lorn was born in Harrow.", "Ada Lorn was born in Ashby."):
        (notes / "a.txt").write_text(text)
        code, out, err = realmctl("index-docs", ".", "--encoder", encoder, "--json")
        assert code == 0 and json.loads(out)["documents"] == 2, err
    code, out, _ = realmctl("search", "Ada Lorn", "--json")
    assert {hit["document"] for hit in json.loads(out)["results"][0]["hits"]} == {"a.txt", "deep/b.txt"}


def test_after_a_change_only_what_changed_is_embedded(realmctl, chain: Chain, tmp_path, notes):
    """With the vectors that an index of the changed documents alone has, up to rounding."""
    encoder = folder_for(chain.blocks, tmp_path / "encoder")

    def made(workspace: str) -> dict[str, object]:
        words = ("index-docs", notes, "--workspace", tmp_path / workspace, "--encoder", encoder, "--json")
        code, out, err = realmctl(*words)
        assert code == 0, err
        return json.loads(out)

    def vectors(found: dict[str, object]) -> np.ndarray:
        return np.load(open_artifact(found["made"]["index"]).file("vectors.npy"))

    assert made("w")["embedded"] == 2
    (notes / "a.txt").rename(notes / "z.txt")
    (notes / "deep" / "c.txt").write_text("Cleo Dunn sailed to Ashby.")
    (notes / "deep" / "b.txt").unlink()
    changed = made("w")
    assert (changed["blocks"], changed["embedded"]) == (2, 2), "a title belongs to its block"
    (notes / "deep" / "d.txt").write_text("Dora Pell left Harrow.")
    changed, anew = made("w"), made("anew")
    assert (changed["blocks"], changed["embedded"], anew["embedded"]) == (3, 1, 3)
    assert np.allclose(vectors(changed), vectors(anew), atol=1e-2)
    again = made("w")
    assert again["made"] == changed["made"] and not any(again["changes"].values()), "and nothing is made again"


def test_files_that_no_reader_knows_are_set_aside_and_counted(realmctl, chain: Chain, tmp_path, notes):
    """A picture among the documents stops nothing; of many only the first are named, and the last line says where all are listed."""
    encoder, workspace = folder_for(chain.blocks, tmp_path / "encoder"), tmp_path / "w"
    words = ("index-docs", notes, "--encoder", encoder, "--workspace", workspace)
    (notes / "scan.pdf").write_bytes(b"%PDF-1.4\n")
    (notes / "empty.md").write_text("")
    code, out, err = realmctl(*words, "--json")
    found = json.loads(out)
    assert code == 0 and found["documents"] == 2 and "scan.pdf" in err
    assert found["left_out"] == {"empty": 1, "set_aside": 1} and found["changes"] is None
    for number in range(5):
        (notes / f"{number}.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><text>a</text></svg>')
    code, out, err = realmctl(*words)
    listed = workspace / "blocks/v2/quarantine.jsonl.zst"
    assert code == 0 and f"1 empty, 6 set aside ({listed} lists them)" in out, err
    assert err.count(".svg is set aside") == 3 and "3 further files" in err
    assert len([*Records(listed)]) == 6
    code, _, err = realmctl(*words, "--bad-files", "fail")
    assert code == 3 and "is tagged text" in err and "--bad-files skip" in err
    code, _, err = realmctl("index-docs", notes / "scan.pdf", "--encoder", encoder, "--workspace", tmp_path / "one")
    assert code == 3 and "scan.pdf" in err, "a file that is named must be read"
    assert "The options named here" not in err, "this command has it too"


def test_copies_are_counted_and_are_one_hit_and_a_file_that_is_nearly_all_is_named(
    realmctl, chain: Chain, tmp_path, notes
):
    for name in ("copy", "again"):
        (notes / f"{name}.txt").write_text((notes / "a.txt").read_text())
    words = ("index-docs", notes, "--encoder", folder_for(chain.blocks, tmp_path / "encoder"), "-w", tmp_path / "w")
    code, out, err = realmctl(*words)
    assert code == 0 and "4 blocks of 4 documents can be searched; 2 blocks say the same as another." in out, err
    assert "of the text" not in err
    for method in ("hybrid", "dense", "bm25"):
        found = package.load_search(tmp_path / "w", method=method).search("Ada Lorn was born in Harrow", 2)
        copies = {found[0].block.document, *(each.document for each in found[0].copies)}
        assert copies <= {"a.txt", "copy.txt", "again.txt"} and (method == "dense" or len(copies) == 3)
        assert [hit.block.document for hit in found[1:]] == ["deep/b.txt"] * (method != "bm25")
    code, out, err = realmctl("search", "Ada Lorn", "-w", tmp_path / "w", "--method", "bm25", "-k", 2)
    assert code == 0 and "the same text: " in out and out.count("was born in Harrow") == 1
    (notes / "server.log").write_text(
        "".join(f"12:00:{n:02} the pump {n} of Harrow was started by hand\n" for n in range(60))
    )
    code, out, err = realmctl(*words)
    assert code == 0 and "warning: server.log is 9" in err and "% of the text" in err, err


def test_a_run_says_what_it_changed(realmctl, chain: Chain, tmp_path, notes):
    words = ("index-docs", notes, "--encoder", folder_for(chain.blocks, tmp_path / "encoder"), "-w", tmp_path / "w")
    assert "Documents:" not in realmctl(*words)[1]
    assert "No document changed." in realmctl(*words)[1]
    (notes / "a.txt").write_text("Cleo Dunn sailed to Ashby.")
    (notes / "deep" / "b.txt").unlink()
    for name in "cd":
        (notes / f"{name}.txt").write_text(f"Dora Pell left Harrow {name}.")
    assert "Documents: 1 changed, 1 removed, 2 added; vectors: 3 new, 0 kept." in realmctl(*words)[1]
    (notes / "d.txt").unlink()
    assert "Documents: 0 changed, 1 removed, 0 added; vectors: 0 new, 2 kept." in realmctl(*words)[1]
    (notes / "d.txt").write_text("Dora Pell left Harrow d.")
    back = realmctl(*words)[1]
    assert "Documents: 0 changed, 0 removed, 1 added; vectors: 0 new, 3 kept." in back, (
        "as it was before: nothing is embedded"
    )


def test_the_time_left_is_of_all_once_the_vectors_are_computed(realmctl, chain: Chain, tmp_path, notes, monkeypatch):
    named = []
    monkeypatch.setattr(pipeline, "name_step", lambda step, later: named.append((step, later)))
    encoder = folder_for(chain.blocks, tmp_path / "encoder")
    code, _, err = realmctl("index-docs", notes, "--encoder", encoder, "--workspace", tmp_path / "w")
    assert code == 0 and named == [("1/3 blocks", ["embeddings"]), ("2/3 embeddings", []), ("3/3 index", [])], err


def test_every_file_that_ships_is_a_pipeline(chain: Chain, notes, tmp_path):
    for file in shipped.HERE.glob("*.yaml"):
        paths = {name: str(notes) for name in ("documents", "queries", "qrels")} | {
            "retriever": str(chain.retriever.path)
        }
        named = yaml.safe_load(file.read_text())["vars"]
        variables = {name: value for name, value in paths.items() if name in named}
        assert pipeline_file.read(file, own_stages(), variables, tmp_path).steps


def test_documents_of_other_languages(realmctl, chain: Chain, notes, tmp_path, monkeypatch):
    """What a language or a dump says is the blocks' language, and decides on the encoder that is taken where none is named."""
    encoder, workspace = folder_for(chain.blocks, tmp_path / "encoder"), tmp_path / "w"
    code, _, err = realmctl("index-docs", notes, "--encoder", encoder, "--language", "de", "--workspace", workspace)
    assert code == 0 and language_of(open_artifact(workspace / "blocks/v1")) == "de", err
    dump = tmp_path / "kowiki.xml"
    dump.write_text('<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" xml:lang="ko"></mediawiki>')
    english, other = shipped.default_encoder([notes], "auto"), shipped.MULTILINGUAL_ENCODER
    assert english == shipped.default_encoder([], "auto") == shipped.default_encoder([dump], "en") != other
    (notes / "gone.ttf").symlink_to("nowhere.ttf")
    assert english == shipped.default_encoder([notes], "auto"), "what cannot be read says no language"
    assert other == shipped.default_encoder([dump], "auto") == shipped.default_encoder([notes], "und")
    code, _, err = realmctl("index-docs", notes, "--language", "klingon", "--workspace", workspace)
    assert code == 2 and "klingon" in err


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_says_whose_options_it_names(realmctl, chain: Chain, tmp_path, monkeypatch, jobs):
    """The user has typed `index-docs`, which has the one, or `run`, which has none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    (tmp_path / "p.yaml").write_text("stages: {cut: {stage: chunk, corpus: [table.csv], tokenizer: train:200}}")
    encoder = folder_for(chain.blocks, tmp_path / "encoder")
    for words, output in (
        (("index-docs", "table.csv", "--encoder", encoder), "blocks"),
        (("run", "p.yaml", "--jobs", jobs), "cut"),
    ):
        code, _, err = realmctl(*words)
        message = err.splitlines()[-1]
        assert code == 3 and message.startswith(f"error: {output} (chunk): table.csv ") and "--text-field" in message
        told = message.endswith(f"`realmctl chunk`; a pipeline file has them as keys of the output {output}.")
        assert told == (output == "cut")


@pytest.mark.parametrize("command", ["index-docs", "adapt"])
def test_what_is_wrong_is_told_in_the_words_of_the_command(realmctl, chain: Chain, notes, tmp_path, command):
    """Not in those of the pipeline file that the command runs, nor with an option that only a stage has."""
    encoder, w = folder_for(chain.blocks, tmp_path / "encoder"), tmp_path / "w"
    Plain().make(w / "other" / "blocks")
    options = set(re.findall(r"--[a-z][a-z-]+", realmctl(command, "--help")[1]))

    def told(documents, *words, workspace=w) -> tuple[int, str]:
        code, _, err = realmctl(command, documents, "--encoder", encoder, "--workspace", workspace, *words)
        message = err.splitlines()[-1]
        assert str(shipped.HERE) not in message
        named = set(re.findall(r"--[a-z][a-z-]+", message.replace("--out of a stage", "")))
        assert named <= options, message
        return code, message

    code, _, err = realmctl(command, notes, "--encoder", "no such/encoder", "--workspace", w)
    assert code == 3 and "error: --encoder no such/encoder" in err
    code, message = told("nope.jsonl")
    assert code == 3 and "error: documents nope.jsonl: there is no such file" in message
    code, message = told(notes, "--max-wordpieces", 3)
    assert code == 2 and message.startswith("error: --max-wordpieces 3 ")
    code, message = told(notes, workspace=w / "other")
    assert code == 2 and f"{w / 'other/blocks'} holds versions of plain" in message
    with locked(w / "blocks"):
        code, message = told(notes)
    assert code == 7 and f"process {os.getpid()}" in message


def test_documents_that_change_after_an_interruption_lose_no_vectors(
    realmctl, chain: Chain, tmp_path, notes, monkeypatch
):
    """Ctrl-C while vectors are made, then a document changes: the same command takes over what was made, and what was there before."""
    encoder = folder_for(chain.blocks, tmp_path / "encoder")
    words = ("index-docs", notes, "--workspace", tmp_path / "w", "--encoder", encoder, "--max-wordpieces", 32, "--json")
    assert realmctl(*words)[0] == 0
    monkeypatch.setattr(embedding, "ROWS_PER_RANGE", 1)
    plain, written = EmbeddingFile.write, []

    def interrupted(file, start, vectors):
        if len(written) == 3:
            raise KeyboardInterrupt
        plain(file, start, vectors)
        written.append(start)

    for name in "cdef":
        (notes / f"{name}.txt").write_text(f"Dora Pell left Harrow for {name}.")
    monkeypatch.setattr(EmbeddingFile, "write", interrupted)
    assert realmctl(*words)[0] == 130
    monkeypatch.setattr(EmbeddingFile, "write", plain)
    (notes / "c.txt").write_text("Cleo Dunn sailed to Ashby.")
    code, out, err = realmctl(*words)
    assert code == 0 and "rm -r" not in err, err
    found = json.loads(out)
    assert (found["blocks"], found["embedded"]) == (6, 3), (
        "a and b were there, c is new, d was made before Ctrl-C, and e and f were not"
    )
    path = open_artifact(found["made"]["embeddings"]).file("embeddings.npy")
    monkeypatch.setattr(embedding, "ROWS_PER_RANGE", 1024)
    code, out, err = realmctl(*words[:3], tmp_path / "anew", *words[4:])
    anew = open_artifact(json.loads(out)["made"]["embeddings"]).file("embeddings.npy")
    np.testing.assert_allclose(np.load(path), np.load(anew), atol=1e-2)


def test_an_interrupted_run_whose_journal_or_vectors_are_damaged_is_no_source(chain: Chain, tmp_path, realmctl, notes):
    """What a run of other blocks, another encoder or a broken folder left in the quarantine is not read."""
    encoder = folder_for(chain.blocks, tmp_path / "encoder")
    words = ("index-docs", notes, "--workspace", tmp_path / "w", "--encoder", encoder, "--max-wordpieces", 32, "--json")
    assert realmctl(*words)[0] == 0
    quarantine = tmp_path / "w/embeddings/quarantine"
    origin = open_artifact(tmp_path / "w/embeddings").manifest
    for number, changes in enumerate(({}, {"inputs": {"blocks": "0" * 64}}), 1):
        partial = quarantine / f"v2.partial-{number}"
        partial.mkdir(parents=True)
        partial.rmdir()
        origin = dataclasses.replace(origin, **changes)
        new_partial(
            partial, Origin(**{each.name: getattr(origin, each.name) for each in dataclasses.fields(Origin)}), True
        )
        (partial / "embeddings.npy").write_bytes(b"no matrix")
    (quarantine / "v2.partial-3").mkdir()
    (notes / "a.txt").write_text("Cleo Dunn sailed to Ashby.")
    code, out, err = realmctl(*words)
    assert code == 0 and json.loads(out)["embedded"] == 1, err
