"""Each format is written, read back, and told from the others; a guess is refused."""

from __future__ import annotations

import gzip
import json
import lzma
import typing
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.corpus.document import Document, cleaned
from realmctl.corpus.formats.detect import FORMATS, format_of
from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings, FormatName
from realmctl.errors import InputError
from realmctl.inputs import streams
from stages.chunk import Chunk


def read(path, name="auto"):
    return [cleaned(page) for page in documents([path], CorpusSettings(format=name))]


def written(tmp_path, text, name="c"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


@pytest.mark.parametrize(
    "text",
    [
        "id\ttitle\ttext\n7\tRome\tRome is a city.\n8\tOslo\tOslo, too.\n",
        'id,title,text\n7,Rome,Rome is a city.\n8,Oslo,"Oslo, too."\n',
        '<doc id="7" url="u?curid=7" title="Rome">\nRome\n\nRome is a city.\n</doc>\n'
        '<doc id="8" url="u" title="Oslo">\nOslo\n\nOslo, too.\n</doc>\n',
        "<DOC>\n<DOCNO> 7 </DOCNO>\n<HEADLINE>Rome</HEADLINE>\n<TEXT>\n<P>Rome is a city.</P>\n</TEXT>\n</DOC>\n"
        "<DOC>\n<DOCNO>8</DOCNO>\n<TITLE>Oslo</TITLE>\n<TEXT>\nOslo, too.\n</TEXT>\n</DOC>\n",
    ],
)
def test_one_corpus_in_four_formats(tmp_path, text):
    expected = [Document("7", "Rome", "Rome is a city."), Document("8", "Oslo", "Oslo, too.")]
    found = read(written(tmp_path, text))
    assert [(d.id, d.title, d.text.strip()) for d in found] == [(d.id, d.title, d.text) for d in expected]


def test_a_csv_field_may_hold_lines_and_quotes(tmp_path):
    text = 'Title,Text\nRome,"Rome is ""eternal"".\nAnd a city."\n'
    assert [(d.title, d.text) for d in read(written(tmp_path, text))] == [("Rome", 'Rome is "eternal".\nAnd a city.')]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\tA passage.\n1\tAnother passage.\n", r"a table of 2 columns .*--format ms-marco"),
        ("query-id\tcorpus-id\tscore\n1\t2\t1\n", r"a table of 3 columns .*--format"),
        ("id,score,rank\n1,2,3\n4,5,6\n", r"separated by commas.*--format"),
    ],
)
def test_a_table_without_a_text_column_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"SQLite format 3\0", r"format: SQLite database\). Export its texts as JSON lines"),
        (b"PK\x03\x04..", r"format: zip archive\). Unpack it"),
        (b"%PDF-1.7", r"format: PDF file\). Extract its text"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8, r"format: PNG image\). Name a file of text"),
        (b"\xff\xd8\xff\xe0..JFIF", "format: JPEG image"),
        ("Rom".encode("utf-16"), r"format: UTF-16 text\). Convert it to UTF-8, for instance with iconv -f UTF-16"),
        (b"id\ttext\n1\t\0\n", "format: binary file"),
        (b"d/a.txt" + bytes(250) + b"ustar", r"format: tar archive\). Unpack it"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, content, message):
    (tmp_path / "c").write_bytes(content)
    for refusing in (format_of, read):
        with pytest.raises(InputError, match=message):
            refusing(tmp_path / "c")
    (tmp_path / "c.gz").write_bytes(gzip.compress(content))
    with pytest.raises(InputError, match=message):
        list(streams.lines(tmp_path / "c.gz"))


def test_ms_marco_is_read_where_the_user_says_so(tmp_path):
    path = written(tmp_path, "0\tA passage.\n1\tAnother passage.\n")
    assert [(d.id, d.text) for d in read(path, "ms-marco")] == [("0", "A passage."), ("1", "Another passage.")]
    with pytest.raises(InputError, match=r"c:1: 3 columns"):
        read(written(tmp_path, "1\tx\ty\n"), "ms-marco")


def test_prose_is_plain_text(tmp_path):
    for text in ("One line, two commas, three.\nAnother, with, commas.\n", "One\ttab\nnone\n", "<p>x</p>", "word"):
        assert format_of(written(tmp_path, text)).name == "plain text, one document a file"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,text\n1\n", r"c:2: 1 columns, but the header names 2"),
        ('id,text\n1,"a"b\n', r"c:2: not a row of CSV"),
        ('<doc id="1" title="T">\nT\n', r"c:1: this document has no </doc>"),
        ('<doc id="1" title="T">\nT\n\nx\n</doc>\nloose\n', r"c:6: text outside of <doc"),
        ("<DOC>\n<TEXT>x</TEXT>\n</DOC>\n", r"c:1: a <DOC> without <DOCNO>"),
    ],
)
def test_a_damaged_document_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, text))


def test_of_a_beir_folder_only_the_corpus_is_read(tmp_path):
    record = json.dumps({"_id": "d1", "title": "Rome", "text": "A city.", "metadata": {}})
    written(tmp_path, record + "\n", "corpus.jsonl")
    written(tmp_path, json.dumps({"_id": "q1", "text": "which city?"}) + "\n", "queries.jsonl")
    (tmp_path / "qrels").mkdir()
    written(tmp_path / "qrels", "query-id\tcorpus-id\tscore\nq1\td1\t1\n", "test.tsv")
    assert [d.id for d in read(tmp_path)] == ["d1"]


def test_xz_is_read_and_a_cut_file_is_an_error(tmp_path):
    whole = lzma.compress(b"One text.") + b"\0" * 4 + lzma.compress(b" And more.")
    (tmp_path / "c.txt.xz").write_bytes(whole)
    assert [d.text for d in read(tmp_path / "c.txt.xz")] == ["One text. And more."]
    (tmp_path / "c.txt.xz").write_bytes(whole[:-5])
    with pytest.raises(InputError, match="cut short"):
        read(tmp_path / "c.txt.xz")


def test_the_flag_offers_every_format():
    offered = typing.get_args(typing.get_type_hints(Chunk, include_extras=True)["format"])
    assert offered == typing.get_args(FormatName) == ("auto", *FORMATS)


@given(st.text(alphabet='\r\n"\t, a{[\x00é', max_size=40).map(str.encode) | st.binary(max_size=200))
def test_any_bytes_have_a_format_or_are_refused(tmp_path_factory, content):
    """A carriage return inside a line once ended in a traceback of the csv module."""
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(content)
    with suppress(InputError):
        assert format_of(path) in FORMATS.values()


NAMES = CorpusSettings(id_field="key", title_field="Headline", text_field="story")
NAMED = {
    "c.csv": "Key,title,Headline,Story,text\n7,no,Rome,A city.,no\n",
    "c.tsv": "text\tstory\theadline\tkey\nno\tA city.\tRome\t7\n",
    "c.jsonl": '{"key": 7, "Headline": "Rome", "story": "A city.", "text": "no", "title": "no", "url": "u", "id": 1}\n',
}


@pytest.mark.parametrize("name", [*NAMED, "c.parquet"])
def test_fields_that_the_user_names(tmp_path, name):
    if name == "c.parquet":
        parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        table = pyarrow.Table.from_pylist([json.loads(NAMED["c.jsonl"])])
        parquet.write_table(table, tmp_path / name)
    else:
        written(tmp_path, NAMED[name], name)
    (found,) = documents([tmp_path / name], NAMES)
    assert (found.id, found.title, found.text) == ("7", "Rome", "A city.")
    for wrong in (
        CorpusSettings(id_field="key", title_field="Headline", text_field="stories"),
        CorpusSettings(id_field="nokey", title_field="", text_field="story"),
    ):
        with pytest.raises(InputError, match=r"named (stories|nokey)|It needs one named stories"):
            list(documents([tmp_path / name], wrong))


def test_a_table_with_a_text_alone_needs_its_name(tmp_path):
    path = written(tmp_path, "story\nOne.\nTwo.\n")
    found = list(documents([path], CorpusSettings(text_field="story")))
    assert [(raw.id, raw.title, raw.text) for raw in found] == [("c-2", "", "One."), ("c-3", "", "Two.")]


def test_names_are_refused_for_a_format_without_fields(tmp_path):
    path = written(tmp_path, "<DOC>\n<DOCNO>1</DOCNO>\nx\n</DOC>\n")
    with pytest.raises(InputError, match="read as TREC text, whose fields cannot be named"):
        list(documents([path], NAMES))
