"""HTML and Markdown become text of which each line says something, and blocks keep and do not divide these lines."""

from __future__ import annotations

import pytest

from realmctl.corpus.corpus import Corpus
from realmctl.corpus.corpus_file import corpus_files
from realmctl.corpus.document import Document
from realmctl.corpus.formats.detect import format_of
from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError
from stages.chunk import Chunk

pytest.importorskip("selectolax")
PAGE = """<!DOCTYPE html>
<html><head><title> Rome &amp;
 more </title><style>p {x: y}</style></head>
<body><header><a href="/">Home</a></header><nav><ul><li>Menu</li></ul></nav>
<h1>The city<a class="headerlink" href="#x">\u00b6</a></h1>
<p>Rome is <b>a</b> city
in <i>Italy</i>.<br>It is old.</p>
<ol><li>First <ul><li>inner</li></ul></li><li><p>Second.</p></li></ol>
<table><tr><th>Name</th><th>Year</th></tr><tr><td>Ada</td><td>1815</td></tr></table>
<pre>ls  -l
  cd x</pre><div hidden>secret</div><script>var x;</script>
<footer>Imprint</footer></body></html>"""
LINES = [
    "The city",
    "Rome is a city in Italy.",
    "It is old.",
    "1. First",
    "- inner",
    "2. Second.",
    "Name | Year",
    "Ada | 1815",
    "ls  -l",
    "  cd x",
]
MARKDOWN = """# The *city*

Rome is **a** city
in [Italy](http://x).

1. First
   - inner
2. Second.

| Name | Year |
|---|---|
| Ada | 1815 |

```bash
ls  -l
  cd x
```
"""


def read(path):
    return list(documents([path], CorpusSettings()))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_page_of_html(tmp_path):
    (found,) = read(write(tmp_path / "Some_page", PAGE))
    assert (found.id, found.title) == ("Some_page", "Rome & more")
    assert found.text.split("\n") == LINES


def test_a_page_of_markdown(tmp_path):
    (found,) = read(write(tmp_path / "a.b.md", MARKDOWN))
    assert (found.id, found.title) == ("a.b.md", "The city")
    assert found.text.split("\n") == [LINES[1], *LINES[3:]]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: 'My page'\ntags: [a]\n---\n# Head\n\nText.\n", "My page"),
        ("Head\n====\n\nText.\n", "Head"),
        ("Intro.\n\n## Second\n\nText.\n", "Second"),
        ("Text.\n", "a page"),
        ("<!-- x -->\n<div align='center'>\n\n# Head\n\n</div>\n\nText.\n", "Head"),
        ("[![x](y)](z)\n\n# Head\n\nText.\n", "Head"),
        ("```\n# no heading\n```\n\n# Head\n", "Head"),
    ],
)
def test_the_title_of_markdown(tmp_path, text, title):
    (found,) = read(write(tmp_path / "a_page.md", text))
    assert found.title == title and "tags" not in found.text


@pytest.mark.parametrize(
    ("html", "title", "text"),
    [
        ("<p>Rome is a city.", "a page", "Rome is a city."),
        ("<html><body><h2>Head</h2>Text</body></html>", "Head", "Text"),
        (
            "<?xml version='1.0'?>\n<html xmlns='http://www.w3.org/1999/xhtml'><body><p>x</p></body></html>",
            "a page",
            "x",
        ),
        (
            "<body>loose<main><header><p>Kept</p></header><aside>note</aside></main><aside>ad</aside>",
            "a page",
            "Kept\nnote",
        ),
        ("<body><header><h1>Head</h1></header><article>one</article><article>two</article>", "Head", "one\ntwo"),
        ("<main> </main><p>Text", "a page", "Text"),
        ("<form><p>Name <input> field</form>", "a page", "Name field"),
        ("<dl><dt>-l<dd>long</dl><svg><title>no</title></svg>", "a page", "-l\nlong"),
        ("<div>" * 5000 + "deep", "a page", "deep"),
    ],
)
def test_odd_pages(tmp_path, html, title, text):
    (found,) = read(write(tmp_path / "a_page.html", html))
    assert (found.title, found.text) == (title, text)


def test_a_page_without_text_is_dropped(tmp_path):
    with pytest.raises(InputError, match="'empty': 1"):
        read(write(tmp_path / "a.html", "<html><body><script>x</script></body></html>"))


def test_html_is_told_by_its_content_and_a_fragment_by_its_name(tmp_path):
    for name, text in (("a", "<p>x</p>"), ("a", "\ufeff<HTML><body>x"), ("a.htm", "words <b>first</b>")):
        (file,) = corpus_files([write(tmp_path / name, text)], CorpusSettings())
        assert format_of(file).name == "HTML, one document a file"


def test_blocks_keep_lines_and_divide_no_item_that_fits(tmp_path):
    items = [f"- Item {number} begins here. It says more about {number}. Then it ends." for number in range(40)]
    write(tmp_path / "docs/guide/list.md", "# Items\n\n" + "\n".join(items) + "\n")
    blocks = Chunk(corpus=(tmp_path / "docs",), tokenizer="train:300", max_wordpieces=64, workers=1).make(
        tmp_path / "b"
    )
    texts = [block.text for block in Corpus(blocks)]
    assert len(texts) > 5 and Corpus(blocks).block(0).document == "guide/list.md"
    assert [line for text in texts for line in text.split("\n")] == items
    for block in Corpus(blocks):
        assert all("\n" not in sentence for sentence in block.sentence_texts())


def test_a_line_that_fits_no_block_is_divided(tmp_path):
    long = "- " + " ".join(f"Sentence {number} of the item." for number in range(40))
    write(tmp_path / "docs/a.md", f"- Short.\n{long}\n- Last.\n")
    blocks = Chunk(corpus=(tmp_path / "docs",), tokenizer="train:300", max_wordpieces=64, workers=1).make(
        tmp_path / "b"
    )
    assert " ".join(block.text.replace("\n", " ") for block in Corpus(blocks)) == f"- Short. {long} - Last."


@pytest.mark.parametrize("extra", [0, 40])
def test_no_block_ends_with_the_heading_of_the_next(tmp_path, extra):
    """With `extra`, the first sentence of a section fits into a block, but not below its two headings."""
    lines, headings = ["# Guide", ""], set()
    for number in range(30):
        words = " ".join(f"word{(number * 7 + each) % 13}" for each in range(number % 9 + 3 + extra))
        lines += [
            f"## Part {number}",
            "",
            f"### <b>Detail</b> {number}?",
            "",
            f"Say {words}.",
            "",
            f"- item {number}",
            "",
        ]
        headings |= {f"Part {number}", f"Detail {number}?"}
    write(tmp_path / "docs/a.md", "\n".join([*lines, "## The end"]))
    blocks = Chunk(corpus=(tmp_path / "docs",), tokenizer="train:300", max_wordpieces=64, workers=1).make(
        tmp_path / "b"
    )
    texts = [block.text for block in Corpus(blocks)]
    assert len(texts) > 8
    assert [text for text in texts if text.split("\n")[-1] in headings] == []
    (document,) = read(tmp_path / "docs")
    assert " ".join(texts).split() == document.text.split()
    assert blocks.metrics["longest_wordpieces"] <= 64


def test_a_heading_that_leaves_no_room_stays_behind(tmp_path):
    sentence = " ".join(f"word{number % 7}" for number in range(40))
    write(tmp_path / "docs/a.md", f"# Guide\n\n## {sentence}\n\n{sentence}.\n")
    chunk = {"corpus": (tmp_path / "docs",), "tokenizer": "train:300", "workers": 1}
    blocks = Chunk(**chunk, max_wordpieces=64).make(tmp_path / "b")
    assert blocks.metrics["longest_wordpieces"] <= 64
    assert " ".join(block.text for block in Corpus(blocks)).split() == f"{sentence} {sentence}.".split()


def test_documents_of_other_formats_have_neither_lines_nor_headings():
    document = Document("d", "T", "a\nb")
    assert not document.has_lines and not document.headings
