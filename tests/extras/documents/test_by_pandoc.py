"""Office documents, books, notebooks and markup that pandoc reads: pandoc writes the files of these tests, too."""

from __future__ import annotations

import gzip
import subprocess
import zipfile
from itertools import pairwise

import pytest

from realmctl.corpus.corpus import Corpus
from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Dropped
from realmctl.corpus.formats.detect import format_of
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError, ResourceError
from realmctl.extras.documents import apart, by_pandoc
from stages.chunk import Chunk

pytest.importorskip("selectolax")
PANDOC = by_pandoc._pandoc()
pytestmark = pytest.mark.skipif(PANDOC is None, reason="needs pandoc")

UNWRITTEN = {"pod", "creole", "twiki", "tikiwiki", "t2t", "vimwiki"}
"""Kinds of markup that pandoc reads and does not write."""
MARKDOWN = """---
title: The handbook
---

# Install

Run the *installer* first.[^1] It takes a minute.

- one
- two

| Name | Year |
|------|------|
| Ada  | 1815 |

[^1]: As root.
"""
BODY = ["Run the installer first. It takes a minute.", "- one", "- two", "Name | Year", "Ada | 1815"]


def written(path, kind: str, text: str = MARKDOWN):
    subprocess.run([PANDOC, "-s", "-f", "markdown", "-t", kind, "-o", path], input=text.encode(), check=True)
    return path


def read(path, kind: str = "auto") -> Document:
    file = CorpusFile(path, CorpusSettings(format=kind), path.name)
    (found,) = format_of(file).read(file)
    assert isinstance(found, Document)
    return found


@pytest.mark.parametrize("kind", ["docx", "epub", "odt"])
def test_a_document_is_told_by_its_ending_and_becomes_lines(tmp_path, kind):
    found = read(written(tmp_path / f"a.{kind}", kind))
    assert found.id == f"a.{kind}" and found.has_lines
    lines = [line for line in found.text.split("\n") if line not in ("Install", "The handbook")]
    assert lines[:5] == BODY and "As root." in lines[5] and len(lines) == 6
    assert any(found.text[:end].endswith("Install") for _, end, *_ in found.leads)
    assert found.title == ("Install" if kind == "odt" else "The handbook"), "pandoc takes no title of an .odt"


def test_slides_rich_text_and_notebooks_are_read(tmp_path):
    for kind in ("pptx", "rtf", "ipynb"):
        found = read(written(tmp_path / f"a.{kind}", kind))
        assert "It takes a minute." in found.text and "Ada" in found.text, kind
    (tmp_path / "note").write_bytes((tmp_path / "a.rtf").read_bytes())
    assert "It takes a minute." in read(tmp_path / "note").text, "rich text is told by its content"


@pytest.mark.parametrize(
    ("ending", "kind"), [(ending, kind) for ending, kind in by_pandoc.MARKUP_ENDINGS.items() if kind not in UNWRITTEN]
)
def test_markup_is_told_by_its_ending_or_named(tmp_path, ending, kind):
    text = "# Install\n\nRun the *installer* first.\n\nAnother paragraph.\n"
    by_ending, named = written(tmp_path / f"a{ending}", kind, text), written(tmp_path / "a.txt", kind, text)
    for found in (read(by_ending), read(named, kind)):
        assert (found.title, found.text.split("\n")[-2:]) == (
            "Install",
            ["Run the installer first.", "Another paragraph."],
        )


def test_perl_documentation_is_read(tmp_path):
    (tmp_path / "a.pod").write_text("=head1 Install\n\nRun the I<installer> first.\n")
    found = read(tmp_path / "a.pod")
    assert (found.title, found.text) == ("Install", "Run the installer first.")


MAN = """.\\" A comment, and macros before the title.
.de Sp
..
.TH GREET 1 2020
.SH NAME
greet \\- say a word
.SH OPTIONS
.TP
.B \\-l
Say it
.I loudly.
"""
BSD = """.Dd October 26, 2022
.Dt GREET 1
.Os
.Sh NAME
.Nm greet
.Nd say a word
"""


def test_man_pages_are_told_by_their_content(tmp_path):
    with gzip.open(tmp_path / "greet.1.gz", "wt") as page:
        page.write(MAN)
    found = read(tmp_path / "greet.1.gz")
    assert found.title == "greet - say a word"
    assert found.text.split("\n") == ["NAME", "greet - say a word", "OPTIONS", "-l", "Say it loudly."]
    (tmp_path / "greet.1").write_text(BSD)
    assert read(tmp_path / "greet.1").text.split("\n")[0] == "NAME"
    assert "greet — say a word" in read(tmp_path / "greet.1").text
    assert read(tmp_path / "greet.1").title == "greet — say a word"
    (tmp_path / "many.3").write_text(MAN.replace("greet \\-", ", ".join(["greet"] * 40) + " \\-"))
    assert read(tmp_path / "many.3").title == "GREET"
    (tmp_path / "hello.1").write_text(".so man1/greet.1\n")
    (found,) = format_of(CorpusFile(tmp_path / "hello.1", CorpusSettings(), "hello.1")).read(
        CorpusFile(tmp_path / "hello.1", CorpusSettings(), "hello.1")
    )
    assert isinstance(found, Dropped), "a page that names another has no text of its own"
    (tmp_path / "list.txt").write_text(".gitignore is a file.\nThe TH element.\n")
    assert read(tmp_path / "list.txt").text.startswith(".gitignore")


def test_a_pandoc_that_does_not_know_the_format_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(by_pandoc.READ, "of-tomorrow", "Tomorrow's")
    (tmp_path / "a.rst").write_text("Title\n=====\n")
    file = CorpusFile(tmp_path / "a.rst", CorpusSettings(), "a.rst")
    with pytest.raises(ResourceError, match="newer pandoc"):
        list(by_pandoc.read_by_pandoc(file, "of-tomorrow"))


def test_markup_is_plain_text_if_the_user_says_so(tmp_path):
    (tmp_path / "a.rst").write_text("Title\n=====\n")
    assert read(tmp_path / "a.rst", "text").text == "Title\n=====\n"


SPHINX = """
:mod:`!shapes` --- Round things
===============================

.. currentmodule:: shapes

.. index:: pair: circle; draw

.. toctree::

   other/page

Call :func:`~shapes.draw` or :py:meth:`Circle.draw() <shapes.Circle.draw>` as :pep:`8` says, see
:ref:`all shapes <shapes-label>` and :samp:`a<b`.

.. versionadded:: 3.1
   Dashed lines.

.. versionchanged:: 3.2

.. deprecated:: 3.3
   Use :func:`paint`.

.. only:: html

   On the web.

.. code-block:: rst

   .. toctree::

      :ref:`a <b>`
"""


def test_a_source_of_sphinx_reads_as_its_page(tmp_path):
    (tmp_path / "a.rst").write_text(SPHINX)
    found = read(tmp_path / "a.rst")
    assert found.title == "shapes --- Round things"
    assert found.text.splitlines() == [
        "Call draw or Circle.draw() as PEP 8 says, see all shapes and a<b.",
        "Added in version 3.1: Dashed lines.",
        "Changed in version 3.2.",
        "Deprecated since version 3.3: Use paint.",
        "On the web.",
        ".. toctree::",
        "   :ref:`a <b>`",
    ]


def test_a_jats_article_is_told_by_its_doctype(tmp_path):
    article = """<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving DTD v1.2//EN" "x.dtd">
<article><front><article-meta><title-group><article-title>On fevers</article-title></title-group></article-meta></front>
<body><sec><title>Methods</title><p>Patients were <italic>asked</italic>.</p></sec></body></article>"""
    (tmp_path / "a.nxml").write_text(article)
    found = read(tmp_path / "a.nxml")
    assert (found.title, found.text) == ("On fevers", "Methods\nPatients were asked.")


def test_a_folder_of_documents_becomes_blocks(tmp_path):
    (tmp_path / "docs").mkdir()
    written(tmp_path / "docs/a.docx", "docx")
    (tmp_path / "docs/b.txt").write_text("A text beside it.")
    made = Chunk(corpus=(tmp_path / "docs",), tokenizer="train:300", max_wordpieces=64, workers=1).make(tmp_path / "w")
    assert {block.document: block.title for block in Corpus(made)} == {"a.docx": "The handbook", "b.txt": "b"}


def test_no_other_file_is_read(tmp_path):
    (tmp_path / "secret.txt").write_text("a secret")
    text = f"Title\n=====\n\n.. include:: {tmp_path}/secret.txt\n\nText.\n"
    (tmp_path / "a.rst").write_text(text)
    assert read(tmp_path / "a.rst", "rst").text == "Text."


def refused(path, message: str, kind: str = "auto") -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(path, kind)
    assert str(path) in str(caught.value)


def test_what_cannot_be_read_is_named(tmp_path, monkeypatch):
    whole = written(tmp_path / "whole.docx", "docx")
    (tmp_path / "cut.docx").write_bytes(whole.read_bytes()[:3000])
    refused(tmp_path / "cut.docx", "damaged")
    with zipfile.ZipFile(tmp_path / "other.docx", "w") as archive:
        archive.writestr("a.txt", "no document")
    refused(tmp_path / "other.docx", "no document in it")
    (tmp_path / "a.zip").write_bytes(whole.read_bytes())
    refused(tmp_path / "a.zip", "zip archive")
    monkeypatch.setattr(by_pandoc, "MAX_OFFICE_BYTES", 99)
    refused(whole, "MiB")


def test_a_file_that_expands_or_takes_too_long_is_refused(tmp_path, monkeypatch):
    macros = "".join("\\newcommand{{\\{}}}{{{}}}".format(new, rf"\{old}" * 10) for old, new in pairwise("abcdefghij"))
    (tmp_path / "a.tex").write_text(rf"\newcommand{{\a}}{{xxxxxxxxxx}}{macros}\begin{{document}}\j\end{{document}}")
    monkeypatch.setattr(apart, "MAX_PARSE_MEMORY", 2**26)
    refused(tmp_path / "a.tex", "memory", "latex")
    monkeypatch.setattr(apart, "MAX_PARSE_MEMORY", 2**33)
    monkeypatch.setattr(apart, "MAX_PARSE_SECONDS", 1)
    refused(tmp_path / "a.tex", "1 s of a core", "latex")
    monkeypatch.setattr(apart, "MAX_PARSE_OUTPUT", 10)
    monkeypatch.setattr(apart, "MAX_PARSE_SECONDS", 9)
    refused(written(tmp_path / "a.docx", "docx"), "its text has more than")


def test_without_pandoc_the_extra_is_named(tmp_path, monkeypatch):
    path = written(tmp_path / "a.docx", "docx")
    monkeypatch.setattr(by_pandoc, "_pandoc", lambda: None)
    with pytest.raises(ResourceError, match=r"realmctl\[documents\]"):
        read(path)


@pytest.mark.parametrize("kind", ["latex", "jats"])
def test_the_abstract_is_read(tmp_path, kind):
    text = MARKDOWN.replace("title: The handbook", "title: The handbook\nabstract: Aspirin reduces fever.")
    path = written(tmp_path / f"a.{kind}", kind, text)
    found = read(path, kind)
    assert "Aspirin reduces fever." in found.text and BODY[0] in found.text
