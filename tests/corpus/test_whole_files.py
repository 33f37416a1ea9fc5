"""Small files of a folder are read by workers. The blocks are those of a single reader."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from realmctl.artifacts.records import Records
from realmctl.corpus import reading, work_units
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.corpus_file import corpus_files
from realmctl.corpus.formats.detect import FORMATS
from realmctl.corpus.reading import CorpusFiles, PageCounts, documents, preview
from realmctl.corpus.settings import CorpusSettings
from realmctl.corpus.work_units import WholeFiles, corpus_units
from realmctl.errors import InputError
from stages.chunk import Chunk


def write(file: Path, numbers: range, opener=open) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with opener(file, "wt") as stream:
        for number in numbers:
            text = f"Ada {number} met Ben in London. They liked it there, and stayed for {number} days."
            stream.write(json.dumps({"id": str(number), "title": f"Page {number}", "text": text}) + "\n")


@pytest.fixture
def folder(tmp_path) -> Path:
    """Small files, one that is compressed, and one that is large for this test; lists are dropped."""
    for number in range(12):
        write(tmp_path / f"corpus/{number // 4}/{number:02}.jsonl", range(20 * number, 20 * number + 20))
    write(tmp_path / "corpus/1/04b.jsonl.gz", range(1000, 1040), gzip.open)
    write(tmp_path / "corpus/1/05b.jsonl", range(2000, 2400))
    (tmp_path / "corpus/2/list").write_text(
        '<doc id="x" url="u" title="List of towns">\nList of towns\n\nA town.\n</doc>\n'
    )
    return tmp_path / "corpus"


def made(folder: Path, out: Path, workers: int = 1):
    return Chunk(corpus=(folder,), tokenizer="train:200", max_wordpieces=48, workers=workers).make(out)


@pytest.mark.usefixtures("workers_at_once")
def test_blocks_and_counts_are_those_of_a_single_reader(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(work_units, "WHOLE_FILE_BYTES", 5000)
    monkeypatch.setattr(work_units, "CHARS_PER_UNIT", 6000)
    units = list(corpus_units(CorpusFiles([folder], CorpusSettings(), PageCounts())))
    whole = [unit for unit in units if isinstance(unit, WholeFiles)]
    assert sum(len(unit.whole) for unit in whole) == 13 and max(len(unit.whole) for unit in whole) > 1
    assert sum(len(unit) for unit in units if isinstance(unit, list)) == 440, "the compressed and the large file"
    here, there = made(folder, tmp_path / "one"), made(folder, tmp_path / "two", workers=2)
    monkeypatch.setattr(work_units, "WHOLE_FILE_BYTES", -1)
    alone = made(folder, tmp_path / "alone")
    assert here.content == there.content == alone.content
    assert here.metrics == there.metrics == alone.metrics
    assert here.metrics["dropped"]["list"] == 1 and here.metrics["documents"] == 680


def test_a_preview_names_all_formats_of_files_that_take_long(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("Ada met Ben.")
    (tmp_path / "b.md").write_text("Ben met Ada.")
    now, kept = [0.0], reading.kept
    monkeypatch.setattr(reading, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def slow(*given):
        for page in kept(*given):
            now[0] += 9
            yield page

    monkeypatch.setattr(reading, "kept", slow)
    found = preview([tmp_path], CorpusSettings())
    assert found["documents"] == "1 and more" and "plain text" in found["format"] and "Markdown" in found["format"]


def test_a_file_that_was_named_is_not_sent_to_a_worker(folder):
    units = list(corpus_units(CorpusFiles([folder / "0/00.jsonl"], CorpusSettings(), PageCounts())))
    assert [type(unit) for unit in units] == [list], "on Ray, a worker may not see it"


@pytest.mark.parametrize("workers", [1, 2])
def test_named_fields_are_those_of_files_that_workers_read_too(tmp_path, workers):
    """Without the names, such a record has neither an id nor a text."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/a.jsonl").write_text(json.dumps({"key": "k", "headline": "T", "story": "A stone."}) + "\n")
    names = {"id_field": "key", "title_field": "headline", "text_field": "story"}
    blocks = Chunk(corpus=(tmp_path / "corpus",), tokenizer="train:200", workers=workers, **names).make(tmp_path / "b")
    block = Corpus(blocks).block(0)
    assert (block.document, block.title, block.text) == ("k", "T", "A stone.")


@pytest.mark.parametrize("workers", [1, 2])
def test_an_id_in_two_files_and_a_bad_line_are_named(folder, tmp_path, workers):
    write(folder / "2/09b.jsonl", range(45, 46))
    with pytest.raises(InputError, match=r"09b\.jsonl:1: .*'45'.*02\.jsonl:6"):
        made(folder, tmp_path / "twice", workers)
    (folder / "2/09b.jsonl").write_text('{"id": "new", "title": "T", "text": "One."}\n{"id": \n')
    with pytest.raises(InputError, match=r"09b\.jsonl:2: "):
        made(folder, tmp_path / "bad", workers)
    assert not list(tmp_path.glob("*/v*"))


def test_a_folder_without_a_document(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/a.jsonl").write_text('{"id": "x", "text": " "}\n')
    with pytest.raises(InputError, match=r"this corpus has no document \(1 read, left out: 1 empty\)"):
        made(tmp_path / "corpus", tmp_path / "none")
    (tmp_path / "corpus/b.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    with pytest.raises(InputError, match=r"\(2 read, left out: 1 empty, 1 unreadable\)"):
        list(documents([tmp_path / "corpus"], CorpusSettings(bad_files="skip")))


@pytest.mark.usefixtures("workers_at_once")
@pytest.mark.parametrize("workers", [1, 2])
def test_bad_files_are_set_aside_whole_if_the_user_says_so(folder, tmp_path, workers):
    good = made(folder, tmp_path / "good")
    broken = {
        "0/bad.jsonl": b'{"id": "z1", "text": "fine"}\n{"id": "z2", "te',
        "1/cut.jsonl.gz": gzip.compress(b'{"id": "z3", "text": "fine"}\n' * 9)[:-9],
        "1/table": b"a\tb\n1\t2\n",
        "2/image.png": b"\x89PNG\r\n\x1a\n" + bytes(64),
        "2/latin.txt": b"caf\xe9 \x81",
        "2/dump.xml": b"<mediawiki><page><title>A</title><ns>0</ns><id>1</id><revision><text>Ada.</text></revision></page>",
    }
    for name, content in broken.items():
        (folder / name).write_bytes(content)
    with pytest.raises(InputError):
        made(folder, tmp_path / "fails", workers)
    blocks = Chunk(corpus=(folder,), tokenizer="train:200", max_wordpieces=48, workers=workers, bad_files="skip").make(
        tmp_path / "skips"
    )
    assert [block.id for block in Corpus(blocks)] == [block.id for block in Corpus(good)]
    assert blocks.metrics["bad_files"] == blocks.metrics["quarantined"] == len(broken)
    listed = {record["id"]: record["reason"] for record in Records(blocks.file("quarantine.jsonl.zst"))}
    assert listed.keys() == broken.keys() and "bad.jsonl:2" in listed["0/bad.jsonl"]


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_files_of_one_document_are_set_aside_where_they_stand(tmp_path, workers):
    for name, content in {
        "a.txt": b"Ada met Ben.",
        "b.txt": b"caf\xe9 \x81",
        "c.txt": b"",
        "d.md": b"Ben met Ada.",
    }.items():
        (tmp_path / name).write_bytes(content)
    out = tmp_path.parent / f"{tmp_path.name}-out"
    made = Chunk(corpus=(tmp_path,), tokenizer="train:100", workers=workers, bad_files="skip").make(out)
    assert [block.document for block in Corpus(made)] == ["a.txt", "d.md"]
    assert made.metrics["bad_files"] == made.metrics["quarantined"] == 1 and made.metrics["dropped"] == {"empty": 1}
    found = preview([tmp_path], CorpusSettings(bad_files="skip"))
    assert found["documents"] == "2, left out: 1 empty, 1 unreadable"
    assert found["format"] == "plain text, one document a file (3 files); Markdown, one document a file"


def test_a_file_of_one_document_is_read_once_where_bad_ones_are_skipped(tmp_path, monkeypatch):
    """Since a parser such as pandoc takes long, and every file would wait for it twice."""
    read, text = [], FORMATS["text"]

    def counted(file):
        read.append(file.name)
        yield from text.read(file)

    monkeypatch.setitem(FORMATS, "text", replace(text, read=counted))
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("Ada met Ben.")
    files = CorpusFiles([tmp_path], CorpusSettings(bad_files="skip"), PageCounts())
    assert len(list(files.documents())) == 2 and read == ["a.txt", "b.txt"]


def test_an_error_in_a_folder_says_how_such_files_are_left_out(tmp_path):
    (tmp_path / "a.txt").write_text("Ada met Ben.")
    (tmp_path / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    for name, content in {"b.png": b"\x89PNG\r\n\x1a\n", "c.jsonl": b"{", "d.txt": b"caf\xe9 \x81"}.items():
        (tmp_path / "b.png").unlink(missing_ok=True)
        (tmp_path / name).write_bytes(content)
        for path, is_told in ((tmp_path, True), (tmp_path / name, False)):
            with pytest.raises(InputError) as caught:
                list(CorpusFiles([path], CorpusSettings(), PageCounts()).documents())
            assert name in str(caught.value) and ("--bad-files skip" in str(caught.value)) == is_told
        (tmp_path / name).unlink()


def test_documents_beside_tables_are_told(tmp_path, capfd):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "data").mkdir()
    parquet.write_table(pyarrow.table({"id": ["a"], "text": ["Ada met Ben."]}), tmp_path / "data/t.parquet")
    (tmp_path / "README.md").write_text("# A data set")
    (tmp_path / "dataset_infos.json").write_text("{}")
    assert len(corpus_files([tmp_path], CorpusSettings())) == 1 and "warning" not in capfd.readouterr().err
    (tmp_path / "handbook.md").write_text("# Rooms")
    assert len(corpus_files([tmp_path], CorpusSettings())) == 1
    told = capfd.readouterr().err
    assert "warning" in told and "handbook.md" in told and "README" not in told


def test_a_corpus_of_bad_files_alone_has_no_document(tmp_path):
    (tmp_path / "a.jsonl").write_text("{")
    with pytest.raises(InputError, match="no document"):
        Chunk(corpus=(tmp_path / "a.jsonl",), tokenizer="train:200", bad_files="skip").make(tmp_path / "b")
