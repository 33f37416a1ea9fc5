"""Each format is written, read back, and told from the others; a guess is refused."""

from __future__ import annotations

import gzip
import json
import lzma
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.corpus.corpus_file import corpus_files
from realmctl.corpus.document import Document, cleaned
from realmctl.corpus.formats.detect import FORMATS, format_of
from realmctl.corpus.formats.format import Format
from realmctl.corpus.formats.records import FieldNames, is_header
from realmctl.corpus.reading import PageCounts, documents, kept
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import ConfigError, InputError
from realmctl.inputs import streams
from realmctl.pipeline.fields import roles
from realmctl.registry import offered
from stages.chunk import Chunk


def read(path, name="auto"):
    return [cleaned(page) for page in documents([path], CorpusSettings(format=name))]


def corpus_file(path):
    return corpus_files([path], CorpusSettings())[0]


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
        ("0\tA passage.\n1\tAnother passage.\n", r"2 columns .*--format ms-marco"),
        ("query-id\tcorpus-id\tscore\n1\t2\t1\n", r"3 columns .*--format"),
        ("id,score,rank\n1,2,3\n4,5,6\n", r"separated by commas.*--format"),
    ],
)
def test_a_table_without_a_text_column_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"SQLite format 3\0", "SQLite"),
        (b"PK\x03\x04..", "zip archive"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8, "PNG"),
        (b"\xff\xd8\xff\xe0..JFIF", "JPEG"),
        (b"id\ttext\n1\t\0\n", "binary"),
        (b"d/a.txt" + bytes(250) + b"ustar", "tar archive"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, content, message):
    (tmp_path / "c").write_bytes(content)
    for refusing in (lambda path: format_of(corpus_file(path)), read):
        with pytest.raises(InputError, match=message):
            refusing(tmp_path / "c")
    (tmp_path / "c.gz").write_bytes(gzip.compress(content))
    with pytest.raises(InputError, match=message):
        list(streams.lines(tmp_path / "c.gz"))


def test_ms_marco_is_read_where_the_user_says_so(tmp_path):
    path = written(tmp_path, "0\tA passage.\n1\tAnother passage.\n")
    assert [(d.id, d.text) for d in read(path, "ms-marco")] == [("0", "A passage."), ("1", "Another passage.")]
    path = written(tmp_path, "docid\tpassage\nid\tA passage of that id.\n")
    assert [(d.id, d.text) for d in read(path, "ms-marco")] == [("id", "A passage of that id.")]
    with pytest.raises(InputError, match=r"c:1: 3 columns"):
        read(written(tmp_path, "1\tx\ty\n"), "ms-marco")


@pytest.mark.parametrize(
    ("columns", "named", "yes"),
    [
        (["id", "text"], FieldNames(), True),
        (["headline", "body", "more"], FieldNames(), True),
        (["text"], FieldNames(), False),
        (["id", "title"], FieldNames(), False),
        (["id", "text", "text"], FieldNames(), False),
        (["words"], FieldNames(text="words"), True),
        (["id", "text"], FieldNames(text="words"), False),
    ],
)
def test_a_header_names_a_text_and_what_tells_its_documents_apart(columns, named, yes):
    assert is_header(columns, named) is yes


def test_prose_is_plain_text(tmp_path):
    for text in (
        "One line, two commas, three.\nAnother, with, commas.\n",
        "One\ttab\nnone\n",
        "<3 you",
        "word",
        "[1] A note.",
    ):
        assert format_of(corpus_file(written(tmp_path, text))).name == "plain text, one document a file"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,text\n1\n", r"c:2: 1 .* 2"),
        ('id,text\n1,"a"b\n', "c:2: "),
        ('<doc id="1" title="T">\nT\n', r"c:1: .*</doc>"),
        ('<doc id="1" title="T">\nT\n\nx\n</doc>\nloose\n', r"c:6: .*<doc"),
        ("<DOC>\n<TEXT>x</TEXT>\n</DOC>\n", r"c:1: .*<DOCNO>"),
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
    assert roles(Chunk)["format"].choices() == ["auto", *FORMATS, *offered("realmctl.formats")]


@given(st.text(alphabet='\r\n"\t, a{[\x00é', max_size=40).map(str.encode) | st.binary(max_size=200))
def test_any_bytes_have_a_format_or_are_refused(tmp_path_factory, content):
    """A carriage return inside a line once ended in a traceback of the csv module."""
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(content)
    with suppress(InputError):
        assert isinstance(format_of(corpus_file(path)), Format)


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
        with pytest.raises(InputError, match=r"stories|nokey"):
            list(documents([tmp_path / name], wrong))


def test_a_table_with_a_text_alone_needs_its_name(tmp_path):
    path = written(tmp_path, "story\nOne.\nTwo.\n")
    found = list(documents([path], CorpusSettings(text_field="story")))
    assert [(raw.id, raw.title, raw.text) for raw in found] == [("c-2", "", "One."), ("c-3", "", "Two.")]


def test_names_are_refused_for_a_format_without_fields(tmp_path):
    path = written(tmp_path, "<DOC>\n<DOCNO>1</DOCNO>\nx\n</DOC>\n")
    with pytest.raises(InputError, match="TREC text"):
        list(documents([path], NAMES))


@pytest.mark.parametrize(
    "text",
    [
        'id;title;text\n1;Rome;A city, in Italy.\n2;Oslo;A town; no: "two".\n'.replace(
            'A town; no: "two".', '"A town; no: ""two""."'
        ),
        'id|title|text\n1|Rome|A city, in Italy.\n2|Oslo|"A town; no: ""two""."\n',
        'ID,Title,TEXT\n1,Rome,"A city, in Italy."\n2,Oslo,"A town; no: ""two""."\n',
        '"id"\t"title"\t"text"\n1\tRome\tA city, in Italy.\n2\tOslo\t"A town; no: ""two""."\n',
    ],
)
def test_columns_may_be_divided_by_tabs_commas_semicolons_and_bars(tmp_path, text):
    found = [(d.id, d.title, d.text) for d in read(written(tmp_path, text))]
    assert found == [("1", "Rome", "A city, in Italy."), ("2", "Oslo", 'A town; no: "two".')]


def test_a_delimiter_that_no_header_shows(tmp_path):
    path = written(tmp_path, "id,x^title^text\n1^Rome^A city.\n")
    settings = CorpusSettings(delimiter="^", id_field="id,x")
    assert [(d.id, d.title, d.text) for d in documents([path], settings)] == [("1", "Rome", "A city.")]
    path = written(tmp_path, "id,title,text\ttext\n1,2,3\tA city.\n")
    found = documents([path], CorpusSettings(delimiter="tab", text_field="text"))
    assert [d.text for d in found] == ["A city."]
    for wrong in ("", "ab", '"', "\n"):
        with pytest.raises(ConfigError, match="--delimiter"):
            CorpusSettings(delimiter=wrong)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "c",
            'headline,story\nRome,"One line.\nAnother, with a comma."\nOslo,"A\n\ntown."\n',
            "commas",
        ),
        ("c", "Headline;Story\nRome;A city.\nOslo;A town.\n", "semicolons"),
        ("c", "head | story\nRome | A city.\nOslo | A town.\n", "bars"),
        ("c", "1,Rome,A city.\n2,Oslo,A town.\n", "commas"),
        ("c", "616:10:Anarchism\n616:12:Autism\n7000:25:A: b\n", "index of a multistream"),
        (
            "c",
            "  <page>\n<title>A</title>\n<revision><text>x</text></revision></page>",
            "fragment",
        ),
        ("c", "the end.</text></revision></page>\n<page><revision>", "fragment"),
        ("c", '<?xml version="1.0"?>\n<!-- x -->\n<rss version="2.0"><channel/></rss>', "<rss>"),
        ("c", "<TEI><text>x</text></TEI>", "<TEI>"),
        ("c.csv", "one,two\nthree\n", r"\.csv"),
        ("c.jsonl.gz", "not json\n", r"\.jsonl"),
        ("c.TSV", "story\nA city.\n", r"\.tsv"),
    ],
)
def test_a_guess_is_refused_unless_the_user_says_that_it_is_text(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    with pytest.raises(InputError, match=message):
        read(path)
    assert [d.text for d in read(path, "text")] == [text]


def test_prose_with_as_many_commas_in_each_line_is_no_table(tmp_path):
    poem = "O rose, thou art sick\nThe worm, unseen\nHas found, by night\nThy bed; of joy, dark\n".replace(
        "; of", " of"
    )
    assert [d.text for d in read(written(tmp_path, poem))] == [poem]


def test_quotes_around_a_field_are_text_unless_those_inside_are_doubled(tmp_path):
    rows = [
        '1\t"Yes" was it, then "No"\tA',
        '2\t"She said ""yes""."\tB',
        '3\t"a" "b"\t"C',
        '4\t"\t"D"',
        '5\t"""Heroes"""\tE',
    ]
    expected = ['"Yes" was it, then "No"', 'She said "yes".', '"a" "b"', '"', '"Heroes"']
    for header in ("id\ttext\ttitle", "id\ttext\ttitle\tx"):
        extra = "\tx" if header.endswith("x") else ""
        text = "\n".join([header, *(row + extra for row in rows)]) + "\n"
        found = read(written(tmp_path, text))
        assert [d.text for d in found] == expected
        assert [d.title for d in found] == ["A", "B", '"C', "D", "E"]


def test_a_part_of_a_collection_without_its_header(tmp_path):
    path = written(tmp_path, "3\tOne.\tA\n4\tTwo.\tA\n")
    assert [d.id for d in read(path, "dpr")] == ["3", "4"]
    path = written(tmp_path, "\nID\ttext\ttitle\n3\tOne.\tA\n")
    assert [d.id for d in read(path, "dpr")] == ["3"]
    path = written(tmp_path, "pid\tpassage\n3\tOne.\n")
    assert [d.id for d in read(path, "ms-marco")] == ["3"]


@pytest.mark.parametrize(
    "headed", [(True, False, False), (False, True, False), (True, True, True), (False, False, False)]
)
def test_any_shard_of_a_collection_may_be_without_its_header(tmp_path, headed):
    (tmp_path / "c").mkdir()
    for number, has_header in enumerate(headed):
        header = "id\ttext\ttitle\n" if has_header else ""
        (tmp_path / "c" / f"{number}.tsv").write_text(f"{header}{number}0\tOne.\tA\n{number}1\tTwo.\tA\n")
    assert [d.id for d in read(tmp_path / "c", "dpr")] == ["00", "01", "10", "11", "20", "21"]


@pytest.mark.parametrize(
    "title", ['"Odd Al" Brendel', 'The "B" side', "a > b", 'x" y', "Tom &amp; Ann", 'Re: id="5" and title="x', ""]
)
def test_a_doc_title_is_read_whole(tmp_path, title):
    plain = title.replace("&amp;", "&")
    for line in (f'<doc id="1" url="u?curid=1" title="{title}">', f'<doc id="1" title="{title}" url="u" >'):
        (found,) = read(written(tmp_path, f"{line}\n{plain}\n\nHe sings.\n\n</doc>\n"))
        assert (found.id, found.title, found.text.strip()) == ("1", plain, "He sings.")


def test_squad_articles_without_a_title_or_with_that_of_another_also_in_another_file(tmp_path):
    paragraphs = [{"context": "A river.", "document_id": 7, "qas": []}]
    articles = [
        {"paragraphs": paragraphs},
        *({"title": "Nile", "paragraphs": paragraphs} for _ in range(2)),
        {"title": None, "paragraphs": paragraphs},
    ]
    written(tmp_path, json.dumps({"data": articles[1:2]}), "t.json")
    written(tmp_path, json.dumps({"data": articles}), "s.json")
    found = read(tmp_path)
    assert [(d.id, d.title) for d in found] == [
        ("s.json-0", ""),
        ("s.json-1", "Nile"),
        ("s.json-2", "Nile"),
        ("s.json-3", ""),
        ("t.json-0", "Nile"),
    ]


@pytest.mark.parametrize("url", ["https://example.org/1", "https://en.wikipedia.org/wiki/Rome"])
def test_pages_of_the_web_are_not_taken_for_those_of_wikiextractor(tmp_path, url):
    """Its entities would be text, and its title filters those of Wikipedia."""
    record = {"id": "1", "url": url, "title": "List of tags", "text": "List of tags\nUse &amp;lt; and <a href='x'>."}
    (found,) = read(written(tmp_path, json.dumps(record) + "\n"))
    assert (found.title, found.text) == (record["title"], record["text"])


def test_a_long_first_object_is_read_to_its_end(tmp_path):
    """WikiExtractor is told by the fields of its first object, whose text may be long."""
    article = {"id": "1", "url": "https://x?curid=1", "title": "T", "text": "\u0416 " * 20_000}
    (tmp_path / "a").write_text(json.dumps(article) + "\n")
    assert format_of(corpus_file(tmp_path / "a")) is FORMATS["wikiextractor"]


def test_a_row_with_a_list_named_data_is_no_squad(tmp_path):
    (tmp_path / "a").write_text('{"id": "1", "text": "Row one.", "data": [1, 2]}\n')
    assert [found.text for found in read(tmp_path / "a")] == ["Row one."]


NESTED = {"meta": {"key": "a", "head": "Larch", "tags": ["x"]}, "article": {"body": "Larch is a tree."}, "a.b": 1}
BY_PATH = CorpusSettings(
    id_field="meta.key", title_field="meta.head", text_field="article.body", keep_fields="meta.tags,a.b,meta.none"
)


@pytest.mark.parametrize("name", ["c.jsonl", "c.parquet"])
def test_nested_fields_are_named_by_their_path(tmp_path, name):
    if name == "c.parquet":
        rows = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(rows.Table.from_pylist([NESTED]), tmp_path / name)
    else:
        written(tmp_path, json.dumps(NESTED), name)
    [found] = documents([tmp_path / name], BY_PATH)
    assert (found.id, found.title, found.text) == ("a", "Larch", "Larch is a tree.")
    assert found.fields == {"meta.tags": ["x"], "a.b": 1}
    wrong = replace(BY_PATH, text_field="article.none")
    with pytest.raises(InputError, match=r"article\.none"):
        list(documents([tmp_path / name], wrong))


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=|"])
def test_the_line_of_excel_that_names_the_delimiter(tmp_path, first):
    mark = first.strip('"')[-1]
    text = f"{first}\r\n" + "".join(
        mark.join(row) + "\r\n" for row in (("id", "title", "text"), ("1", "Larch", '"A, tree"'))
    )
    path = written(tmp_path, text, "c.csv")
    [found] = documents([path], CorpusSettings())
    assert (found.id, found.title, found.text) == ("1", "Larch", "A, tree")
    with pytest.raises(InputError, match=r"c\.csv:4"):
        list(documents([written(tmp_path, f"{text}2{mark}x\r\n", "c.csv")], CorpusSettings()))


def test_ids_that_are_none(tmp_path):
    with pytest.raises(InputError, match="its id is a number with a fraction"):
        list(documents([written(tmp_path, '{"id": 1.0, "text": "A tree."}', "c.jsonl")], CorpusSettings()))
    rows = [{"id": "", "text": "One."}, {"id": "  ", "text": "Two."}, {"id": 0, "text": "Three."}]
    path = written(tmp_path, "\n".join(map(json.dumps, rows)), "c.jsonl")
    assert [each.id for each in documents([path], CorpusSettings())] == ["c.jsonl-1", "c.jsonl-2", "0"]


def test_the_text_of_langchain_is_known(tmp_path):
    path = written(tmp_path, '{"page_content": "A tree.", "metadata": {"source": "a"}}', "c.jsonl")
    assert [each.text for each in documents([path], CorpusSettings())] == ["A tree."]


@pytest.mark.parametrize(("made", "named"), [([{"text": "Rome"}], "dict"), (["Rome"], "str"), (None, "NoneType")])
def test_what_a_format_yields_and_is_no_page_is_told(tmp_path, made, named):
    """A mistake of who wrote the format, whose file the message names."""
    file = corpus_file(written(tmp_path, "Rome"))
    for kind in (Format("torn", lambda file: made), Format("torn", lambda file: made, is_one=True)):
        with pytest.raises(ConfigError, match=rf"{__name__}, which reads the format 'torn', yields {named}"):
            list(kept(file, kind, PageCounts()))
