"""EPUB books: all chapters in the order of reading, by the rules for pages of HTML."""

from __future__ import annotations

import pytest

from stages.chunk import Chunk
from tests.extras.documents.elements.office_files import packed
from tests.extras.documents.test_by_pandoc import read

pytest.importorskip("selectolax")
XHTML = 'xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"'


def book(path, *chapters: str, linear: tuple[str, ...] = ()):
    """A book of these chapters; a chapter is linear or not as `linear` says."""
    items = "".join(
        f'<item id="c{number}" href="text/part%20{number}.xhtml" media-type="application/xhtml+xml"/>'
        for number in range(len(chapters))
    )
    spine = "".join(
        f'<itemref idref="c{number}" linear="{kind}"/>' for number, kind in enumerate(linear or ["yes"] * len(chapters))
    )
    return packed(
        path,
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
            "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<metadata><dc:title>The mill &amp; the river</dc:title></metadata><manifest>{items}"
            '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/></manifest>'
            f"<spine>{spine}<itemref idref='nav'/></spine></package>",
            "OEBPS/nav.xhtml": f"<html {XHTML}><body><nav>Contents</nav><h1>Contents</h1></body></html>",
            **{
                f"OEBPS/text/part {number}.xhtml": f'<?xml version="1.0"?><!DOCTYPE html><html {XHTML}><head><title/><script/></head><body>{chapter}</body></html>'
                for number, chapter in enumerate(chapters)
            },
        },
    )


def test_all_chapters_are_read_in_order_also_those_that_are_not_linear(tmp_path):
    made = book(
        tmp_path / "a.epub",
        '<h1>Dawn</h1><p>It was&nbsp;cold.<a id="x"/> He left.</p>',
        "<section><p>Answers.</p></section>",
        "<article><p>Later.</p></article>",
        linear=("yes", "no", "yes"),
    )
    found = read(made)
    assert (found.title, found.text.split("\n")) == (
        "The mill & the river",
        ["Dawn", "It was cold. He left.", "Answers.", "Later."],
    )
    assert not found.lost


def test_notes_are_text_and_what_is_hidden_is_none(tmp_path):
    made = book(
        tmp_path / "a.epub",
        '<p>Seen<sup><a epub:type="noteref" href="#n">1</a></sup>.</p><aside id="n"><p>A note.</p></aside>'
        '<p hidden="">Secret.</p><p style="display: none">Secret.</p><header><p>Headed.</p></header>',
    )
    assert read(made).text.split("\n")[1:] == ["A note.", "Headed."]


def test_words_that_are_lost_are_told_and_counted(tmp_path, capsys):
    (tmp_path / "shelf").mkdir()
    book(tmp_path / "shelf/drawn.epub", "<p>Seen here.</p><svg><text>Drawn words</text></svg>")
    contents = '<div class="toc"><p>Contents</p><dl><dt><a href="#s">1. Seen here in the mill</a></dt></dl></div>'
    book(tmp_path / "shelf/plain.epub", f"{contents}<p>Seen here.</p>")
    made = Chunk(corpus=(tmp_path / "shelf",), tokenizer="train:300", max_wordpieces=64, workers=1).make(tmp_path / "w")
    assert made.metrics["incomplete"] == 1
    told = [line.partition("warning: ")[2] for line in capsys.readouterr().err.splitlines() if "its text lacks" in line]
    assert told == [f"{tmp_path}/shelf/drawn.epub: its text lacks 2 of its 4 words (50.0%), such as 'Drawn', 'words'."]
