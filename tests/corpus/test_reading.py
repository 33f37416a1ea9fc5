from __future__ import annotations

import bz2
import gzip
import json
import os
import shutil
import socket

import pytest

from realmctl.artifacts import open_artifact
from realmctl.artifacts.hashing import digest_source, files_below
from realmctl.artifacts.records import Records
from realmctl.corpus import document
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.corpus_file import corpus_files
from realmctl.corpus.document import Document, SkippedPage, cleaned
from realmctl.corpus.formats.detect import format_of
from realmctl.corpus.reading import PageCounts, UniqueIds, documents, preview
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError
from realmctl.pipeline.sources import localise
from stages.chunk import Chunk


def read(*paths, keep_lists=False):
    return [cleaned(page) for page in documents(paths, CorpusSettings(keep_lists=keep_lists))]


def jsonl(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_wikiextractor_links_become_anchors_and_entities_text(tmp_path):
    escaped = '&lt;a href="Italy%23North"&gt;northern Italy&lt;/a&gt;'
    text = f'Rome &amp; Co\n\nRome is in {escaped}, by <a href="Tiber_%28river%29">the Tiber</a>.'
    path = jsonl(
        tmp_path / "wiki_00",
        {"id": "7", "revid": "1", "url": "u?curid=7", "title": "Rome &amp; Co", "text": text},
    )
    assert format_of(*corpus_files([path], CorpusSettings())).name == "WikiExtractor JSON lines"
    (found,) = read(path)
    assert found.title == "Rome & Co"
    assert found.text == "Rome is in northern Italy, by the Tiber."
    assert [(found.text[a:b], target) for a, b, target in found.links] == [
        ("northern Italy", "Italy"),
        ("the Tiber", "Tiber (river)"),
    ]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"id": 3, "title": "T", "text": "x"}, ("3", "T", "x")),
        ({"_id": "a", "title": "T", "text": "x", "metadata": {}}, ("a", "T", "x")),
        ({"docid": "d", "body": "x", "title": None}, ("d", "", "x")),
        ({"id": "0", "contents": '"Quoted title"\nthe text'}, ("0", "Quoted title", "the text")),
        ({"id": "0", "contents": "only text"}, ("0", "", "only text")),
        pytest.param(
            {"wikipedia_id": "5", "wikipedia_title": "K", "text": ["K\n", "First.\n", "Second."]},
            ("5", "K", "First.\nSecond."),
            marks=pytest.mark.house,  # KILT's layout has a room
        ),
        ({"title": "T", "text": "a &amp; [[b]] <c>"}, ("c.jsonl-1", "T", "a &amp; [[b]] <c>")),
        ({"DocNo": "AP-1", "Title": 1984, "Text": "x"}, ("AP-1", "1984", "x")),
        ({"docno": "LA-2", "HEADLINE": "News", "body": "x"}, ("LA-2", "News", "x")),
        ({"pid": 4, "title": "", "contents": "x"}, ("4", "", "x")),
        ({"id": 5, "title": "T", "body": None, "contents": "x"}, ("5", "T", "x")),
        ({"passage_id": 3, "title": 2.5, "text": "x"}, ("3", "2.5", "x")),
        ({"id": 1, "title": "T", "text": None, "contents": "x"}, ("1", "T", "x")),
        ({"id": 1, "title": "T", "text": None}, ("1", "T", "")),
        ({"id": 6, "title": "T", "text": [" a ", "b"]}, ("6", "T", "a\nb")),
        ({"id": 7, "contents": "t" * 300 + "\nx"}, ("7", "t" * 300, "x")),
        ({"id": 7, "contents": "t" * 301 + "\nx"}, ("7", "", "t" * 301 + "\nx")),
    ],
)
def test_json_lines_by_other_names(tmp_path, record, expected):
    (found,) = read(jsonl(tmp_path / "c.jsonl", record))
    assert (found.id, found.title, found.text) == expected
    assert found.links == ()


def test_a_text_that_the_user_names_has_no_title_in_it(tmp_path):
    path = jsonl(tmp_path / "c.jsonl", {"id": 1, "contents": "T\nx"})
    (found,) = documents([path], CorpusSettings(text_field="contents"))
    assert (found.title, found.text) == ("", "T\nx")


@pytest.mark.parametrize(
    "line",
    [
        '{"id": 1, "text": ',
        '["a"]',
        '{"id": 1, "title": "T"}',
        '{"id": 1, "text": 5}',
        '{"id": [1], "text": "x"}',
        '{"id": 1.5, "text": "x"}',
        '{"title": ["T"], "text": "x"}',
        '{"title": true, "text": "x"}',
        '{"text": "\\ud800"}',
        "[" * 100_000,
    ],
)
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": 0, "text": "fine"}\n\n' + line + "\n")
    with pytest.raises(InputError, match=r"c\.jsonl:3: "):
        read(path)


def test_dpr_passages(tmp_path):
    path = tmp_path / "psgs_w100.tsv.gz"
    path.write_bytes(gzip.compress(b'id\ttext\ttitle\n1\t"He said ""no"" to it"\tA\n2\tplain\t"B, C"\n'))
    assert [(d.id, d.title, d.text) for d in read(path)] == [
        ("1", "A", 'He said "no" to it'),
        ("2", "B, C", "plain"),
    ]
    path.write_bytes(gzip.compress(b"id\ttext\ttitle\nid\tA passage of that id.\tA\n"))
    assert [d.id for d in read(path)] == ["id"]
    for line in (b"1\tonly two\n", b"1\ttext\ttitle\tmore\n"):
        path.write_bytes(gzip.compress(b"id\ttext\ttitle\n" + line))
        with pytest.raises(InputError, match=r"psgs_w100\.tsv\.gz:2: "):
            read(path)


@pytest.mark.parametrize("indent", [None, 2])
def test_squad_layout_is_a_corpus_too(tmp_path, indent):
    article = {
        "title": "Super_Bowl",
        "paragraphs": [{"context": "One. ", "qas": []}, {"context": "Two.", "qas": []}],
    }
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"version": "1.1", "data": [article]}, indent=indent))
    assert read(path) == [Document("s.json-0", "Super Bowl", "One.\nTwo.")]
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "x", "paragraphs": [{}]}]}, indent=indent))
    with pytest.raises(InputError, match=r"s\.json: "):
        read(path)


def test_a_folder_is_walked_in_sorted_order_and_hidden_files_are_left_alone(tmp_path, capfd):
    for name in ("b/wiki_01", "b/wiki_00", "a/wiki_00", ".hidden/x", "a/.index"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}")
    assert [d.id for d in read(tmp_path)] == ["a/wiki_00", "b/wiki_00", "b/wiki_01"]
    for name in ("b/wiki_01", "b/wiki_00", "a/wiki_00"):
        jsonl(tmp_path / name, {"id": name, "text": "x"})
    assert [d.id for d in read(tmp_path)] == ["a/wiki_00", "b/wiki_00", "b/wiki_01"]
    assert capfd.readouterr().err.count("JSON lines") == 1


def test_plain_text_is_one_document_a_file(tmp_path):
    (tmp_path / "Deep_sea.txt").write_text("First.\r\n\r\nSecond.")
    assert read(tmp_path / "Deep_sea.txt") == [Document("Deep_sea.txt", "Deep sea", "First.\n\nSecond.")]


WIKIPEDIA = ["A", "List of As", "A (disambiguation)", "B"]


def test_titles_of_wikipedia_are_filtered_and_everything_is_counted(tmp_path):
    pages = [{"id": t, "url": "u?curid=1", "title": t, "text": "x"} for t in WIKIPEDIA[:3]]
    path = jsonl(tmp_path / "wiki_00", *pages, {"id": "n", "url": "u?curid=1", "title": "", "text": "\n"})
    doc = tmp_path / "wiki_01"
    doc.write_text("".join(f'<doc id="{t}2" url="u" title="{t}">\n{t}\n\nx\n</doc>\n' for t in WIKIPEDIA[:3]))
    counts = PageCounts()
    assert [raw.id for raw in documents([path, doc], counts=counts)] == ["A", "A2"]
    assert counts.pages == 7
    assert counts.dropped == {"list": 2, "disambiguation": 2, "empty": 1}
    assert counts.examples["list"] == ["List of As", "List of As2"]
    assert [d.title for d in read(path, keep_lists=True)] == ["A", "List of As"]


@pytest.mark.parametrize("name", ["c.jsonl", "c.tsv", "c.csv", "squad.json", "c.trec", "dpr.tsv", "c.parquet"])
def test_no_other_format_drops_a_document_by_its_title(tmp_path, name):
    path, rows = tmp_path / name, [{"id": t, "title": t, "text": "x"} for t in WIKIPEDIA]
    match name:
        case "c.jsonl":
            jsonl(path, *rows)
        case "c.tsv" | "c.csv":
            split = "\t" if name == "c.tsv" else ","
            path.write_text(
                "".join(f"{split.join(row)}\n" for row in [("id", "title", "text"), *(row.values() for row in rows)])
            )
        case "squad.json":
            path.write_text(json.dumps({"data": [{"title": t, "paragraphs": [{"context": "x"}]} for t in WIKIPEDIA]}))
        case "c.trec":
            path.write_text(
                "".join(f"<DOC>\n<DOCNO>{t}</DOCNO>\n<TITLE>{t}</TITLE>\n<TEXT>x</TEXT>\n</DOC>\n" for t in WIKIPEDIA)
            )
        case "dpr.tsv":
            path.write_text("id\ttext\ttitle\n" + "".join(f"{t}\tx\t{t}\n" for t in WIKIPEDIA))
        case _:
            parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
            parquet.write_table(
                pyarrow.Table.from_pylist([{key.upper(): value for key, value in row.items()} for row in rows]), path
            )
    found = [(d.id, d.title, d.text.strip()) for d in read(path)]
    ids = [f"squad.json-{number}" for number in range(len(WIKIPEDIA))] if name == "squad.json" else WIKIPEDIA
    assert found == [(identity, title, "x") for identity, title in zip(ids, WIKIPEDIA, strict=True)]


def test_many_dropped_documents_are_a_warning_with_the_first_ids(tmp_path, capfd):
    counts = PageCounts(pages=1000)
    for number in range(900):
        counts.drop("redirect", f"r{number}")
    for number in range(3):
        counts.drop("empty", f"e{number}")
    counts.tell()
    said = capfd.readouterr().err
    assert "3 of 100" in said and "warning" not in said, "without redirects"
    later = PageCounts(pages=1)
    later.drop("empty", "last")
    counts.add(later)
    counts.tell()
    said = capfd.readouterr().err
    assert "warning" in said and "4 of 101" in said and "'e0', 'e1', 'e2', ..." in said and "redirect" not in said


NO_IDS = {"text": "x"}


@pytest.mark.parametrize(
    ("files", "named", "expected"),
    [
        (["c4.00000-of-2.json", "c4.00001-of-2.json"], ["."], ["c4.00000-of-2.json-1", "c4.00001-of-2.json-1"]),
        (["a/x.txt", "b/x.txt", "b/x.md.txt"], ["."], ["a/x.txt", "b/x.md.txt", "b/x.txt"]),
        (["a/x.txt", "b/x.txt"], ["a/x.txt", "b/x.txt"], ["a/x.txt", "b/x.txt"]),
        (["a/x.json", "b/x.json"], ["b", "a"], ["b/x.json-1", "a/x.json-1"]),
        (["v1.2 notes.txt", "v1.3 notes.txt.gz"], ["."], ["v1.2 notes.txt", "v1.3 notes.txt.gz"]),
        (["a/x.txt"], ["a/x.txt"], ["x.txt"]),
    ],
)
def test_documents_without_ids_have_the_path_of_their_file(tmp_path, files, named, expected):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        content = json.dumps(NO_IDS).encode() if "json" in name else b"One."
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert [d.id for d in read(*(tmp_path / name for name in named))] == expected


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("v1.2 notes.txt", "v1.2 notes"),
        ("ls.1.txt", "ls.1"),
        ("Dr. Li", "Dr. Li"),
        ("wiki_00", "wiki 00"),
        ("a.b.txt.gz", "a.b"),
        ("\u1109\u1165\u110b\u116e\u11af_Ko\u0308ln.txt", "서울 Köln"),
    ],
)
def test_the_title_of_a_text_is_its_whole_name(tmp_path, name, title):
    (tmp_path / name).write_bytes(b"One.")
    assert [d.title for d in read(tmp_path / name)] == [title]


def test_dump_pages_are_raw_until_a_worker_cleans_them(tmp_path):
    path = tmp_path / "d.xml.bz2"
    page = "<page><title>A</title><ns>0</ns><id>4</id><revision><text>'''A''' is [[b]].</text></revision></page>"
    path.write_bytes(bz2.compress(f"<mediawiki>{page}</mediawiki>".encode()))
    (raw,) = documents([path])
    assert raw.text == "'''A''' is [[b]]."
    assert cleaned(raw) == Document("4", "A", "A is b.", ((5, 6, "B"),))


def test_a_page_that_hangs_is_set_aside(monkeypatch):
    def hang(page):
        while True:
            pass

    page = Document("4", "Slow", "x", clean=hang)
    monkeypatch.setattr(document, "PAGE_SECONDS", 0.05)
    assert cleaned(page) == SkippedPage("4", "Slow", "not cleaned within 0.05 s")


@pytest.mark.parametrize("content", ["", "\n\n", '{"id": 1, "text": " "}\n'])
def test_an_empty_corpus_is_an_error(tmp_path, content):
    (tmp_path / "c").write_text(content)
    with pytest.raises(InputError, match="no document"):
        read(tmp_path / "c")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="a folder without files"):
        read(tmp_path / "folder")


def test_an_id_that_comes_twice_is_refused_with_its_line(tmp_path):
    first = jsonl(tmp_path / "a.jsonl", {"id": 1, "text": "x"}, {"id": 2, "text": "x"})
    second = jsonl(tmp_path / "b.jsonl", {"id": 3, "text": "x"}, {"id": 2, "text": "x"})
    with pytest.raises(InputError, match=r"b\.jsonl:2.*'2'.*a\.jsonl:2"):
        read(first, second)


def test_ids_seen_long_ago_are_noticed_too():
    """Among the newest, in the arrays of ten, and in the first array of 160."""
    for again in range(230):
        ids = UniqueIds(recent=10)
        for number in range(230):
            ids.add(str(number), f"f:{number}")
        ids.add(str(again), "g:1")
        with pytest.raises(InputError, match=rf"g:1: .*'{again}'"):
            ids.settle()


def test_a_json_array_of_no_objects_is_refused_with_the_way_out(tmp_path):
    (tmp_path / "a.json").write_text("[[1], [2]]")
    with pytest.raises(InputError, match="jq -c"):
        format_of(*corpus_files([tmp_path / "a.json"], CorpusSettings()))


def test_what_is_neither_file_nor_folder(tmp_path):
    with pytest.raises(InputError, match="not a file or a folder"):
        read(tmp_path / "missing")


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.symlink_to("odd"),
        lambda path: path.symlink_to(path.parent),
        lambda path: socket.socket(socket.AF_UNIX).bind(os.path.relpath(path)),
    ],
)
def test_what_is_no_file_and_no_folder_is_refused_by_name(tmp_path, make, monkeypatch):
    """A FIFO in a folder hung, and the others were left out without a word."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    jsonl(tmp_path / "folder" / "a.jsonl", {"text": "x"})
    make(tmp_path / "folder" / "odd")
    for look in (read, lambda path: localise(path, (), True, "--corpus"), lambda path: [*files_below(path)]):
        with pytest.raises(InputError, match="odd"):
            look(tmp_path / "folder")
    without = shutil.copytree(tmp_path / "folder", tmp_path / "other", ignore=lambda *_: ["odd"])
    assert digest_source(tmp_path / "folder") != digest_source(without)  # and does not hang


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("nowhere"), lambda path: path.symlink_to(".")]
)
def test_what_is_no_file_is_set_aside_if_the_user_says_so(tmp_path, make, realmctl):
    (tmp_path / "folder").mkdir()
    jsonl(tmp_path / "folder" / "a.jsonl", {"text": "Ada was born in Ashby."})
    make(tmp_path / "folder" / "odd.txt")
    words = ("chunk", tmp_path / "folder", "--tokenizer", "train:100", "--out", tmp_path / "blocks")
    code, _, err = realmctl(*words)
    assert code == 3 and "odd.txt" in err
    code, _, err = realmctl(*words, "--bad-files", "skip")
    assert code == 0, err
    made = open_artifact(tmp_path / "blocks")
    assert made.metrics["bad_files"] == 1 and made.metrics["documents"] == 1
    [aside] = Records(made.file("quarantine.jsonl.zst"))
    assert aside["id"] == "odd.txt" and "cannot be read" in aside["reason"]


def test_linked_folders_and_files_are_read(tmp_path):
    for name in ("folder", "elsewhere"):
        (tmp_path / name).mkdir()
        jsonl(tmp_path / name / "a.jsonl", {"id": name, "text": name})
    jsonl(tmp_path / "one.jsonl", {"id": "one", "text": "x"})
    before = digest_source(tmp_path / "folder")
    (tmp_path / "folder" / "sub").symlink_to("../elsewhere")
    (tmp_path / "folder" / "file.jsonl").symlink_to("../one.jsonl")
    assert len(read(tmp_path / "folder")) == 3
    assert digest_source(tmp_path / "folder") != before


def test_a_dry_run_says_format_documents_and_the_first_titles(realmctl, tmp_path):
    path = jsonl(tmp_path / "c.jsonl", *({"id": n, "title": f"Page {n}", "text": "x"} for n in range(5)), {"id": "e"})
    with pytest.raises(InputError, match=r"c\.jsonl:6"):
        preview([path], CorpusSettings())
    path = jsonl(tmp_path / "c.jsonl", *({"id": n, "title": f"Page {n}", "text": "x"} for n in range(5)), {"text": ""})
    found = preview([path], CorpusSettings())
    assert found["format"] == "JSON lines" and found["documents"] == "5, left out: 1 empty"
    assert found["first"].startswith("0 'Page 0'; 1 'Page 1'")
    assert "and more" in preview([path], CorpusSettings(), seconds=-1)["documents"]
    code, out, err = realmctl("chunk", path, "--dry-run")
    assert code == 0 and all(text in out for text in found.values()), err
    assert json.loads(realmctl("chunk", path, "--dry-run", "--json")[1])["found"] == found


def test_a_name_that_is_not_utf_8_is_written_and_a_bad_file_of_that_name_is_set_aside(tmp_path):
    (tmp_path / "docs").mkdir()
    for name, text in ((b"caf\xe9.txt", "Some text.\n"), (b"bad\xe9.pdf", "%PDF-1.4 x"), (b"a.txt", "Other text.\n")):
        (tmp_path / "docs" / os.fsdecode(name)).write_text(text)
    blocks = Chunk(corpus=(tmp_path / "docs",), tokenizer="train:100", bad_files="skip", workers=1).make(
        tmp_path / "out"
    )
    assert [block.document for block in Corpus(blocks)] == ["a.txt", "caf\\xe9.txt"]
    assert blocks.metrics["bad_files"] == 1


TREC = """<DOC> <DOCNO>FT1</DOCNO>
<HEAD>On a &lt; b</HEAD>
<TEXT>a < b and c > d. Body one.</TEXT></DOC>
<DOC>
<DOCNO>FT2</DOCNO><TEXT>
Body <b>two</b>.
</TEXT>
</DOC>
"""


def test_trec_documents_end_where_their_tag_stands(tmp_path):
    (tmp_path / "a.trec").write_text(TREC)
    one, two = read(tmp_path / "a.trec")
    assert (one.id, one.title, one.text) == ("FT1", "On a < b", "a < b and c > d. Body one.")
    assert (two.id, " ".join(two.text.split())) == ("FT2", "Body two .")


def test_all_texts_of_a_trec_document_count(tmp_path):
    (tmp_path / "a.trec").write_text(TREC.replace("</TEXT></DOC>", "</TEXT>\n<TEXT>More.</TEXT></DOC>"))
    assert read(tmp_path / "a.trec")[0].text == "a < b and c > d. Body one.\n\nMore."


def test_a_trec_document_without_an_end_does_not_take_the_next(tmp_path):
    (tmp_path / "a.trec").write_text(TREC.replace("</TEXT></DOC>", "</TEXT></DOC> x"))
    with pytest.raises(InputError, match="</DOC>"):
        read(tmp_path / "a.trec")


def test_an_empty_field_gives_way_to_one_with_text(tmp_path):
    (found,) = read(jsonl(tmp_path / "a.jsonl", {"id": "1", "text": "", "body": "The real body."}))
    assert found.text == "The real body."


def test_the_code_of_a_site_is_no_document(tmp_path, capsys):
    for name in (
        "index.html",
        "b/page.htm",
        "searchindex.js",
        "_static/a.css",
        "_static/a.js",
        "_sources/index.rst.txt",
        "notes.txt",
    ):
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text("<!DOCTYPE html><p>Words.")
    names = [file.name for file in corpus_files([tmp_path / "site"], CorpusSettings())]
    assert names == ["b/page.htm", "index.html", "notes.txt"] and "4 files" in capsys.readouterr().err
    script = tmp_path / "site" / "searchindex.js"
    assert [file.path for file in corpus_files([script], CorpusSettings())] == [script]


def test_scripts_without_pages_are_documents(tmp_path):
    for name in ("a.js", "b.css"):
        (tmp_path / name).write_text("Words.")
    assert [file.name for file in corpus_files([tmp_path], CorpusSettings())] == ["a.js", "b.css"]
