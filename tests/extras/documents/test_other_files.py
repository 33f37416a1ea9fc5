"""Subtitles, calendars, bibliographies, archives of web pages, spreadsheets and exports of wikis are read as what they are."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from realmctl.corpus.document import Document, SkippedPage, cleaned
from realmctl.corpus.reading import CorpusFiles, PageCounts, documents
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError
from realmctl.extras.documents import by_pandoc
from tests.extras.documents.elements.office_files import DECLARED_OPEN, packed

needs_pandoc = pytest.mark.skipif(by_pandoc._pandoc() is None, reason="needs pandoc")


def read(tmp_path, name: str, content: str | bytes, **settings: str) -> list[Document]:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [each for each in map(cleaned, documents([path], CorpusSettings(**settings))) if isinstance(each, Document)]


SRT = """1
00:00:01,000 --> 00:00:03,500
Good <i>evening</i>, this is

2
00:00:03,600 --> 00:00:06,000 X1:10
{\\an8}the mill &amp; its wheel.

3
00:00:09,100 --> 00:00:10,000
- 340 turns

4
00:00:10,100 --> 00:00:11,000
- a day?
"""
VTT = """WEBVTT - a talk
Kind: captions

NOTE
no one sees this

STYLE
::cue(v[voice="Ann"]) { color: red }

intro
00:01.000 --> 00:03.500 align:start position:0%
<v.loud Ann>Good evening,</v>

00:03.600 --> 00:06.000
<v Ann>this is<00:00:04.719><c> the</c> mill.

00:06.100 --> 00:07.000
<v Bo>It
burnt in 1911.
"""
ASS = """[Script Info]
Title: x

[V4+ Styles]
Style: Default,Arial,20

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,{\\i1}Good evening,{\\i0} this\\Nis the mill.
Comment: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,unseen
Dialogue: 0,0:00:03.10,0:00:04.00,Default,,0,0,0,,It burnt.
"""


@pytest.mark.parametrize("name", ["a.srt", "a.txt", "a"])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (SRT, ["Good evening, this is the mill & its wheel.", "- 340 turns", "- a day?"]),
        (SRT.replace("\n", "\r\n"), ["Good evening, this is the mill & its wheel.", "- 340 turns", "- a day?"]),
        (VTT, ["Ann: Good evening, this is the mill.", "Bo: It burnt in 1911."]),
        (ASS, ["Good evening, this is the mill. It burnt."]),
    ],
    ids=["SubRip", "SubRip, Windows", "WebVTT", "SubStation"],
)
def test_subtitles_are_what_is_said(tmp_path, name, content, lines):
    [found] = read(tmp_path, name, content)
    assert found.text.split("\n") == lines and found.has_lines


def test_captions_that_roll_are_read_once(tmp_path):
    cues = ["one two", "one two\nthree four", "three four", "three four\nfive six"]
    text = "".join(f"00:0{n}.000 --> 00:0{n}.900\n{cue}\n\n" for n, cue in enumerate(cues))
    assert read(tmp_path, "a.vtt", f"WEBVTT\n\n{text}")[0].text == "one two three four five six"


def test_prose_with_times_is_no_subtitle(tmp_path):
    text = "1\nAt 00:00:01,000 --> 00:00:02,000 the bell rang."
    assert read(tmp_path, "a.txt", text)[0].text == text
    assert read(tmp_path, "b.srt", "no cue at all")[0].text == "no cue at all"


CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:STANDARD
DTSTART:19701025T030000
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
DTSTART;TZID="Europe/Berlin":20240504T100000
DTEND;TZID="Europe/Berlin":20240504T123000
SUMMARY:Mill day
LOCATION:Dole\\, hall 2
DESCRIPTION;LANGUAGE=en:The wheel turns\\, says Ann and the
  river is low.\\nBring paint.
CATEGORIES:feast
BEGIN:VALARM
DESCRIPTION:ring
END:VALARM
END:VEVENT
BEGIN:VTODO
DUE;VALUE=DATE:20240601
SUMMARY:Paint it
END:VTODO
BEGIN:VEVENT
DTSTART:20240701
END:VEVENT
END:VCALENDAR
"""


def test_each_entry_of_a_calendar_is_a_document(tmp_path):
    day, task = read(tmp_path, "a.ics", CALENDAR.replace("\n", "\r\n"))
    assert (day.id, day.title) == ("a.ics-1", "Mill day")
    assert (
        day.text
        == "2024-05-04 10:00 \u2013 2024-05-04 12:30\nDole, hall 2\nThe wheel turns, says Ann and the river is low.\nBring paint."
    )
    assert day.fields == {"date": "2024-05-04T10:00", "location": "Dole, hall 2", "categories": "feast"}
    assert (task.id, task.title, task.text) == ("a.ics-2", "Paint it", "\u2013 2024-06-01")


BIBLIOGRAPHIES = {
    "a.bib": '@string{j={Mills}}\n@article{poe, title={On {D{\\^o}le}}, author={Poe, Ann and B{\\"o}ll, Bo}, year=1911, month=may, journal=j, '
    "abstract={It burnt \\emph{down}.}, keywords={fire}}\n@book{poe2, title={Wheels}, editor={{The Guild}}, date={1920-03-01}, publisher={Hall}}",
    "a.ris": "TY  - JOUR\nID  - poe\nTI  - On Dôle\nAU  - Poe, Ann\nAU  - Böll, Bo\nPY  - 1911/05\nJO  - Mills\nAB  - It burnt down.\nKW  - fire\nER  - \n"
    "TY  - BOOK\nID  - poe2\nTI  - Wheels\nED  - The Guild\nPY  - 1920/03/01\nPB  - Hall\nER  - \n",
}


@needs_pandoc
@pytest.mark.parametrize("name", BIBLIOGRAPHIES)
def test_each_entry_of_a_bibliography_is_a_document(tmp_path, name):
    first, second = read(tmp_path, name, BIBLIOGRAPHIES[name])
    assert (first.id, first.title.lower()) == (f"{name}-poe", "on dôle")
    lines = first.text.split("\n")
    assert (
        lines[0].startswith("Ann Poe, Bo Böll (1911")
        and lines[1] == "Mills"
        and "It burnt down." in lines
        and "fire" in lines
    )
    assert first.fields["author"] == "Ann Poe, Bo Böll" and "1911" in str(first.fields["date"])
    assert second.title == "Wheels" and "Guild" in second.text and "1920" in second.text and "Hall" in second.text


@needs_pandoc
def test_a_damaged_bibliography_is_named(tmp_path):
    with pytest.raises(InputError, match=r"a\.bib"):
        read(tmp_path, "a.bib", "@article{a, title={x")


def record(kind: str, body: bytes, address: str = "http://example.org/", **more: str) -> bytes:
    header = {
        "WARC-Type": kind,
        "WARC-Target-URI": address,
        "WARC-Date": "2024-05-04T10:00:00Z",
        **more,
        "Content-Length": str(len(body)),
    }
    return (
        b"WARC/1.0\r\n"
        + "".join(f"{name}: {value}\r\n" for name, value in header.items()).encode()
        + b"\r\n"
        + body
        + b"\r\n\r\n"
    )


def answer(body: bytes, *headers: str, status: str = "200 OK", kind: str = "text/html") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{''.join(f'{each}{chr(13)}{chr(10)}' for each in headers)}\r\n".encode()
        + body
    )


PAGE = "<html><head><title>T{0}</title></head><body><p>Larch words {0} é.</p></body></html>"
CHUNKED = (
    b"".join(
        b"%x;ext=1\r\n%s\r\n" % (len(part), part)
        for part in (PAGE.format(3).encode()[:20], PAGE.format(3).encode()[20:])
    )
    + b"0\r\n\r\n"
)
RECORDS = [
    record("warcinfo", b"software: x\r\n"),
    record("request", b"GET / HTTP/1.1\r\n\r\n"),
    record("response", answer(PAGE.format(1).encode())),
    record("response", answer(gzip.compress(PAGE.format(2).encode()), "Content-Encoding: gzip")),
    record("response", answer(CHUNKED, "Transfer-Encoding: chunked")),
    record("response", answer(PAGE.format(4).encode("latin-1"), kind="text/html; charset=ISO-8859-1")),
    record("response", answer(zlib.compress(PAGE.format(5).encode()), "Content-Encoding: deflate")),
    record("response", answer(PAGE.format(6).encode(), "Content-Encoding: gzip")),
    record("response", answer(b"gone", status="404 Not Found")),
    record("response", answer(b"\x89PNG", kind="image/png")),
    record("response", answer(PAGE.format(7).encode(), "Content-Encoding: br")),
    record("conversion", "Plain words é.".encode(), **{"Content-Type": "text/plain"}),
    record("resource", PAGE.format(8).encode(), address="<http://example.org/8>", **{"Content-Type": "text/html"}),
]  # fmt: skip


@pytest.mark.parametrize("packed_as", ["plain", "whole", "each"])
def test_the_pages_of_an_archive_of_the_web(tmp_path, packed_as):
    data = b"".join(gzip.compress(each) if packed_as == "each" else each for each in RECORDS)
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(data) if packed_as == "whole" else data)
    counts = PageCounts()
    found = [*CorpusFiles([path], CorpusSettings(), counts).documents()]
    read = [each for each in found if isinstance(each, Document)]
    assert [each.text for each in read] == [
        *(f"Larch words {n} é." for n in range(1, 7)),
        "Plain words é.",
        "Larch words 8 é.",
    ]
    assert [each.title for each in read] == [*(f"T{n}" for n in range(1, 7)), "http://example.org/", "T8"]
    assert {each.fields["url"] for each in read} == {"http://example.org/", "http://example.org/8"}
    assert len({each.id for each in read}) == 8 and dict(counts.dropped) == {"no_answer": 1, "no_page": 1}
    assert ["coded by 'br'" in each.reason for each in found if isinstance(each, SkippedPage)] == [True]


def test_archives_of_the_web_that_are_long_wrong_or_cut(tmp_path, monkeypatch):
    from realmctl.extras.documents import web_archives

    whole = record("response", answer(PAGE.format(1).encode()))
    length = str(len(answer(PAGE.format(1).encode()))).encode()
    short = whole.replace(length, b"100", 1)
    assert [each.text[:11] for each in read(tmp_path, "short.warc", short + whole)][-1] == "Larch words"
    for cut in (whole[:-20], whole[:40], b"WARC/1.0\r\nWARC-Type: response\r\n\r\nx"):
        with pytest.raises(InputError, match=r"cut\.warc"):
            read(tmp_path, "cut.warc", cut)
    monkeypatch.setattr(web_archives, "MAX_RECORD_BYTES", 200)
    bomb = record("response", answer(gzip.compress(b"a" * 100_000), "Content-Encoding: gzip"))
    long = record("response", answer(b"x" * 1000))
    path = tmp_path / "long.warc"
    path.write_bytes(long + bomb + whole)
    found = [*documents([path], CorpusSettings())]
    assert [isinstance(each, SkippedPage) for each in found] == [True, True, False]


def test_sql_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"a\.sql is SQL"):
        read(tmp_path, "a.sql", "-- dump\nINSERT INTO `page` VALUES (1,'Larch');\n")
    assert read(tmp_path, "b.sql", "Notes on how we select.")[0].text == "Notes on how we select."


CELL = "<table:table-cell{1}><text:p>{0}</text:p></table:table-cell>"
SHEETS = f"""<office:document-content {DECLARED_OPEN}><office:automatic-styles>
<style:style style:name="off" style:family="table"><style:table-properties table:display="false"/></style:style></office:automatic-styles>
<office:body><office:spreadsheet>
<table:table table:name="Prices"><table:table-column/><table:table-column table:visibility="collapse"/><table:table-column table:number-columns-repeated="1000"/>
<table:table-header-rows><table:table-row>{CELL.format("Thing", "")}{CELL.format("Hidden", "")}{CELL.format("Cost", "")}</table:table-row></table:table-header-rows>
<table:table-row><table:table-cell><office:annotation><text:p>comment</text:p></office:annotation><text:p>Pump<text:s/>A</text:p><text:p>new</text:p></table:table-cell>{CELL.format("h", "")}<table:table-cell table:number-columns-repeated="2"/>{CELL.format("340", ' table:number-columns-repeated="2"')}<table:table-cell table:number-columns-repeated="16000"/></table:table-row>
<table:table-row table:visibility="filter">{CELL.format("filtered", "")}</table:table-row>
<table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row>
<table:shapes><draw:custom-shape><text:p>A box</text:p></draw:custom-shape></table:shapes></table:table>
<table:table table:name="Secret" table:style-name="off"><table:table-row>{CELL.format("unseen", "")}</table:table-row></table:table>
</office:spreadsheet></office:body></office:document-content>"""


def test_spreadsheets_of_opendocument_are_the_texts_that_are_shown(tmp_path):
    path = packed(
        tmp_path / "a.ods", {"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": SHEETS}
    )
    [found] = documents([path], CorpusSettings())
    assert isinstance(found, Document) and not found.lost
    assert found.title == "Prices" and found.text.split("\n") == ["Thing | Cost", "Pump A new | | | 340 | 340", "A box"]


LINES = [
    {"index": {"_type": "_doc", "_id": "11"}},
    {"title": "Larch", "text": "Larch is a tree.", "namespace": 0},
    {"index": {"_id": "12"}},
    {"title": "Talk about elm", "text": "Sign.", "namespace": 1},
    {"index": {"_id": "13"}},
    {"title": "Elm", "text": "Elm is a tree.", "namespace": 0, "wiki": "x"},
]


def test_the_pages_of_cirrussearch(tmp_path):
    path = tmp_path / "c.json"
    path.write_text("".join(json.dumps(each) + "\n" for each in LINES), encoding="utf-8")
    counts = PageCounts()
    found = [*CorpusFiles([path], CorpusSettings(), counts).documents()]
    assert [(each.id, each.title) for each in found] == [("11", "Larch"), ("13", "Elm")] and dict(counts.dropped) == {
        "namespace": 1
    }


HTML = (
    '<html><body class="mw-parser-output"><section><div class="hatnote">For the town, see Larch.</div><table class="infobox"><tr><td>Height</td></tr></table>'
    '<p id="mwAg"><b>Larch</b> is a tree of 3<sup>2</sup> m<sup class="mw-ref reference" typeof="mw:Extension/ref"><a>[1]</a></sup>.</p></section>'
    "<section><h2>Use</h2><ul><li>poles</li></ul><h3>In 1911</h3><p>Masts.</p></section>"
    '<section><h2>References</h2><p>none</p><h3>Books</h3><ol class="references"><li>Poe</li></ol></section><section><h2>Later</h2><p>It stands.</p></section></body></html>'
)


def article(name: str, number: int, namespace: int = 0, **body: str) -> dict[str, object]:
    return {"name": name, "identifier": number, "date_modified": "2023-01-01T00:00:00Z", "namespace": {"identifier": namespace},
            "in_language": {"identifier": "en"}, "url": f"https://en.example.org/wiki/{name}", "article_body": body}  # fmt: skip


def test_the_articles_of_wikimedia_enterprise(tmp_path):
    rows = [
        article("Larch", 1, html=HTML, wikitext="'''Larch''' is a {{tree}}."),
        article("Elm", 2, wikitext="'''Elm''' is a [[tree]]."),
        article("Talk:Elm", 3, 1, wikitext="Sign."),
        article("Ash", 4, wikitext="#REDIRECT [[Elm]]"),
        article("Oak (disambiguation)", 5, html="<p>Oak may be</p>"),
        article(
            "Fir", 6, html='<html><body><meta property="mw:PageProp/disambiguation"><p>Fir may be</p></body></html>'
        ),
    ]
    path = tmp_path / "enwiki_0.ndjson"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    counts = PageCounts()
    larch, elm = map(cleaned, CorpusFiles([path], CorpusSettings(), counts).documents())
    assert isinstance(larch, Document) and larch.text.split("\n") == [
        "Larch is a tree of 3^2 m.",
        "- poles",
        "Masts.",
        "It stands.",
    ]
    assert (larch.id, larch.title, larch.fields["url"]) == ("1", "Larch", "https://en.example.org/wiki/Larch")
    assert isinstance(elm, Document) and elm.text == "Elm is a tree." and [link[2] for link in elm.links] == ["Tree"]
    assert dict(counts.dropped) == {"namespace": 1, "redirect": 1, "disambiguation": 2}


def test_an_empty_calendar_is_told(tmp_path):
    (tmp_path / "a.ics").write_text("BEGIN:VCALENDAR\nEND:VCALENDAR\n", encoding="utf-8")
    with pytest.raises(InputError, match="no document"):
        read(tmp_path, "a.ics", "BEGIN:VCALENDAR\nEND:VCALENDAR\n")


MARKUPS = {
    "opml": '<opml version="2.0"><head><title>Plan</title></head><body><outline text="Wheel"><outline text="Buy paint in 1911."/></outline></body></opml>',
    "dokuwiki": "====== Plan ======\nBuy **paint** in //1911//.\n",
    "jira": "h1. Plan\nBuy *paint* in _1911_.\n",
    "creole": "= Plan =\nBuy **paint** in //1911//.\n",
    "twiki": "---+ Plan\nBuy *paint* in _1911_.\n",
    "tikiwiki": "! Plan\nBuy __paint__ in ''1911''.\n",
    "vimwiki": "= Plan =\nBuy *paint* in _1911_.\n",
    "muse": "* Plan\n\nBuy **paint** in *1911*.\n",
    "t2t": "\n\n\n= Plan =\nBuy **paint** in //1911//.\n",
    "djot": "# Plan\n\nBuy *paint* in _1911_.\n",
    "haddock": "= Plan\n\nBuy __paint__ in /1911/.\n",
}


@needs_pandoc
@pytest.mark.parametrize("name", MARKUPS)
def test_more_markup_that_pandoc_reads(tmp_path, name):
    [found] = read(tmp_path, "a.x", MARKUPS[name], format=name)
    assert found.text.split("\n")[-1].removeprefix("- ") == "Buy paint in 1911." and found.title in ("Plan", "Wheel")
