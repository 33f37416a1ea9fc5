"""Of man pages, LaTeX, DocBook, JATS, RTF, Org, Textile, Typst, POD, FictionBook, BITS, pages of wikis, other markup and notebooks each word of each element comes out once, in order, and glued to none."""

from __future__ import annotations

import json

import pytest

from realmctl.corpus.document import Document
from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError
from realmctl.extras.documents import by_pandoc, latex, rich_text, troff, wiki_marks, xml_markup
from tests.extras.documents.elements import markup_snippets
from tests.extras.documents.elements.snippets import faults, filled

pytestmark = pytest.mark.skipif(by_pandoc._pandoc() is None, reason="needs pandoc")

JATS = (
    '<?xml version="1.0"?><!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving DTD v1.0//EN" "x.dtd"><article><front><article-meta>'
    "<title-group><article-title>T</article-title></title-group>{front}</article-meta></front><body>\n{body}\n</body><back>{back}</back></article>"
)
FRAMES = {
    "man": (markup_snippets.MAN, ".TH X 1\n.SH NAME\nx \\- y\n.SH A\n{}\n"),
    "mdoc": (markup_snippets.MDOC, ".Dd May 1, 2020\n.Dt X 1\n.Os\n.Sh NAME\n.Nm x\n.Nd y\n.Sh A\n{}\n"),
    "latex": (markup_snippets.LATEX, "\\documentclass{{article}}\\begin{{document}}\n{}\n\\end{{document}}"),
    "docbook": (markup_snippets.DOCBOOK, '<?xml version="1.0"?><article><title>T</title>\n{}\n</article>'),
    "jats": (markup_snippets.JATS, JATS.replace("{body}", "{}").replace("{front}", "").replace("{back}", "")),
    "rtf": (markup_snippets.RTF, "{{\\rtf1\\ansi {}}}"),
    "org": (markup_snippets.ORG, "{}"),
    "textile": (markup_snippets.TEXTILE, "h1. T\n\n{}"),
    "typst": (markup_snippets.TYPST, "= T\nWords.\n\n{}"),
    "pod": (markup_snippets.POD, "=head1 T\n\n{}\n"),
    "fb2": (
        markup_snippets.FICTION_BOOK,
        '<?xml version="1.0" encoding="utf-8"?><FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0" xmlns:l="http://www.w3.org/1999/xlink">'
        "<description><title-info><book-title>T</book-title></title-info></description><body>{}</body></FictionBook>",
    ),
    "dokuwiki": (markup_snippets.DOKUWIKI, "====== T ======\n\nWords.\n\n{}"),
    "jira": (markup_snippets.JIRA, "h1. T\n\nWords.\n\n{}"),
    "creole": (markup_snippets.CREOLE, "= T =\n\nWords.\n\n{}"),
    "tikiwiki": (markup_snippets.TIKIWIKI, "! T\n\nWords.\n\n{}"),
    "twiki": (markup_snippets.TWIKI, "---+ T\n\nWords.\n\n{}"),
    "vimwiki": (markup_snippets.VIMWIKI, "= T =\n\nWords.\n\n{}"),
    "mediawiki": (markup_snippets.MEDIAWIKI, "== T ==\n\nWords.\n\n{}"),
    "muse": (markup_snippets.MUSE, "#title T\n\nWords.\n\n{}"),
    "t2t": (markup_snippets.TXT2TAGS, "T\nA\nD\n\nWords.\n\n{}"),
    "djot": (markup_snippets.DJOT, "# T\n\nWords.\n\n{}"),
    "asciidoc": (markup_snippets.ASCIIDOC, "= T\n\nWords.\n\n{}"),
    "markdown": (markup_snippets.MARKDOWN, "# T\n\nWords.\n\n{}"),
    "html": (markup_snippets.HTML, "<title>T</title><main><h1>Words.</h1>{}</main>"),
    "haddock": (markup_snippets.HADDOCK, "= T\n\nWords.\n\n{}"),
    "bits": (
        markup_snippets.BITS,
        '<?xml version="1.0"?><book><book-meta><book-title-group><book-title>T</book-title></book-title-group></book-meta><book-body><book-part book-part-type="chapter">'
        "<book-part-meta><title-group><title>U</title></title-group></book-part-meta><body>{}</body></book-part></book-body></book>",
    ),
}
ENDED_BY_BRACKETS = {"man", "mdoc", "docbook", "jats", "fb2", "bits", "html"}


def read(tmp_path, name: str, source: str) -> str:
    (tmp_path / "a.x").write_text(source, encoding="utf-8")
    [found] = documents([tmp_path / "a.x"], CorpusSettings(format=name))
    assert isinstance(found, Document)
    return found.text


@pytest.mark.parametrize("name", FRAMES)
def test_each_word_of_each_element_comes_out_once(tmp_path, name):
    snippets, frame = FRAMES[name]
    apart = "\\par\n" if name == "rtf" else "" if name in ENDED_BY_BRACKETS else "\n"
    made = filled((element, text + apart) for element, text in snippets.items())
    assert faults(made, read(tmp_path, name, frame.format(made.text))) == {}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("One[fn:: a [b] [[l][c]] d] two", "One two\n1. a [b] c d"),
        ("One[fn:: a [fn:: b] c] two", "One two\n1. a (b) c"),
        ("One[fn:n-o: a] two[fn:n-o]", "One two\n1. a"),
        ("One[fn:n] two\n\n[fn:n] a[fn:: b] c\n\n\nThree[fn:: d]", "One two\nThree\n1. a (b) c\n2. d"),
        ("* H\nOne[fn:: a\nb]\n* I :noexport:\nTwo[fn:: c]", "One\n1. a b"),
        ("[fn:: a\n\nb] [c] d]", "[fn:: a\nb] [c] d]"),
        ("#+BEGIN_SRC\na [fn:: b]\n#+END_SRC\n\nc", "a [fn:: b]\nc"),
    ],
)
def test_notes_of_org_come_out_once_and_whole(tmp_path, source, text):
    assert read(tmp_path, "org", source) == text


def test_what_stands_before_and_behind_an_article(tmp_path):
    made = filled(
        [
            ("abstract", "<abstract><title>@</title><p>@</p></abstract>"),
            ("translated", "<trans-abstract><title>@</title><p>@</p></trans-abstract>"),
            ("keywords", "<kwd-group><kwd>@</kwd><kwd>@</kwd></kwd-group>\f"),
            ("thanks", "<ack><p>@</p></ack>"),
            ("notes", "<fn-group><fn><p>@</p></fn></fn-group>"),
            ("references", "<ref-list><title>@</title><ref><label>@</label><mixed-citation>@ <bold>@</bold>.</mixed-citation></ref><ref><element-citation><article-title>@</article-title><source>@</source></element-citation></ref></ref-list>"),
        ]
    )  # fmt: skip
    front, back = made.text.split("\f")
    assert faults(made, read(tmp_path, "jats", JATS.format(front=front, back=back, body="<p>Words.</p>"))) == {}


@pytest.mark.parametrize(
    ("name", "body", "lost"),
    [
        ("jats", "<fig><caption><p>Seen words</p></caption><kwd-group><label>Unread pieces</label><kwd>Seen</kwd></kwd-group></fig>", "2 of its 4 different words (50.0%), such as 'Unread', 'pieces'"),
        ("jats", "<p>Seen <b>wor</b>ds.<xref><sup>1</sup></xref> <inline-formula><tex-math>unread</tex-math></inline-formula></p>", ""),
        ("docbook", "<para>Seen<indexterm><primary>Unread</primary></indexterm> words</para>", ""),
    ],
)  # fmt: skip
def test_words_of_an_xml_source_that_are_lost_are_told(tmp_path, name, body, lost):
    (tmp_path / "a.x").write_text(FRAMES[name][1].format(body), encoding="utf-8")
    [found] = documents([tmp_path / "a.x"], CorpusSettings(format=name))
    assert isinstance(found, Document) and found.lost == lost


def test_a_note_that_is_asked_for_stands_behind_the_text_once(tmp_path):
    body = '<p>Words<xref ref-type="fn" rid="a"><sup>1</sup></xref> go on.</p>'
    back = '<fn-group><fn id="a"><label>1</label><p>One note.</p></fn><fn id="b"><p>Another note.</p></fn></fn-group>'
    text = read(tmp_path, "jats", JATS.format(front="", back=back, body=body))
    assert "Words go on." in text and text.count("One note.") == text.count("Another note.") == 1


def cell(kind: str, source: str, *outputs: dict[str, object]) -> dict[str, object]:
    more = {"outputs": [*outputs], "execution_count": 1} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source, **more}


def shown(**data: str) -> dict[str, object]:
    return {"output_type": "display_data", "metadata": {}, "data": data}


NOTEBOOK = [
    cell("markdown", "@ **@**"),
    cell("raw", "@\n@"),
    cell("code", "@", shown(**{"text/markdown": "*@*", "text/plain": "~"})),
    cell("code", "@", shown(**{"text/latex": "$@$", "text/plain": "~"})),
    cell("code", "@", shown(**{"text/html": "<b>@</b>", "text/markdown": "~"})),
    cell("code", "@", {"output_type": "stream", "name": "stdout", "text": ["@"]}, shown(**{"text/markdown": "@"}), {"output_type": "stream", "name": "stderr", "text": "@"}),
    cell("code", "@", {"output_type": "error", "ename": "e", "evalue": "v", "traceback": ["\u001b[31m@\u001b[0m"]}),
    cell("code", "", shown(**{"text/markdown": "@"})),
]  # fmt: skip


@pytest.mark.parametrize("version", [4, 5])
def test_all_cells_of_a_notebook(tmp_path, version):
    made = filled((str(number), json.dumps(each)) for number, each in enumerate(NOTEBOOK))
    cells = [json.loads(line) for line in made.text.split("\n")]
    source = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": version})
    assert faults(made, read(tmp_path, "ipynb", source)) == {}


@pytest.mark.parametrize(
    ("prepare", "part"),
    [
        *((latex.as_text, part) for part in ("\\fbox{", "\\begin{frame}", "\\item[", "{", "\\begin{itemize}\\item[a] ", "\\fbox", "\\")),
        *((troff.as_text, part) for part in (".SM ", ".MR a\n", ".ig\n", '.SB "')),
        *((rich_text.as_text, part) for part in ("{\\deleted ", "}", "{", "\\page")),
        *((wiki_marks.jira, part) for part in ("[a|b", "{*}", "{status:")),
        *((wiki_marks.tikiwiki, part) for part in ("~~red:", "~tc~", "(( ")),
        *((xml_markup.jats, part) for part in ("<p>", "<ref-list/>", "&")),
    ],
)  # fmt: skip
def test_marks_that_do_not_match_change_nothing_else(prepare, part):
    found = prepare(f"before {part * 200} after")
    assert found.startswith("before") and (found.endswith("after") or part == ".ig\n")


def test_a_source_that_takes_long_is_set_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(by_pandoc, "PAGE_SECONDS", 0.05)
    (tmp_path / "a.tex").write_text("\\fbox{" * 100_000, encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.tex cannot be read as LaTeX, because it takes more than"):
        list(documents([tmp_path / "a.tex"], CorpusSettings()))


def test_entities_are_left_to_pandoc():
    source = '<!DOCTYPE a [<!ENTITY b "c">]><article><title>&b;</title></article>'
    assert xml_markup.docbook(source) == source


@pytest.mark.parametrize(
    ("name", "source", "charset"),
    [
        ("fb2", '<?xml version="1.0" encoding="windows-1251"?><FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0"><body><section><p>{}</p></section></body></FictionBook>', "cp1251"),
        ("docbook", '<?xml version="1.0" encoding="KOI8-R"?><article><title>T</title><para>{}</para></article>', "koi8-r"),
        ("opml", '<?xml version="1.0" encoding="windows-1251"?><opml><body><outline text="{}"/></body></opml>', "cp1251"),
        ("latex", "\\documentclass{{article}}\\usepackage[cp1251]{{inputenc}}\\begin{{document}}{}\\end{{document}}", "cp1251"),
        ("org", "# -*- coding: koi8-r -*-\n{}", "koi8-r"),
        ("pod", "=pod\n\n=encoding koi8-r\n\n{}\n", "koi8-r"),
        ("textile", "{}", "utf-16"),
    ],
)  # fmt: skip
def test_a_source_is_read_in_the_charset_that_it_declares(tmp_path, name, source, charset):
    (tmp_path / "a.x").write_bytes(source.format("Мельница сгорела.").encode(charset))
    [found] = documents([tmp_path / "a.x"], CorpusSettings(format=name))
    assert found.text == "Мельница сгорела."


def test_bytes_of_rtf_are_those_of_its_code_page(tmp_path):
    letters = "".join(f"\\'{byte:02x}" for byte in "Мел".encode("cp1251"))
    assert read(tmp_path, "rtf", f"{{\\rtf1\\ansi\\ansicpg1251 {letters} \\u1084\\'ec}}") == "Мел м"
