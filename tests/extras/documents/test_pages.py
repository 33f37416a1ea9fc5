"""HTML and Markdown become text of which each line says something, and blocks keep and do not divide these lines."""

from __future__ import annotations

import pytest

from realmctl.corpus.corpus import Corpus
from realmctl.corpus.corpus_file import corpus_files
from realmctl.corpus.document import Document, SkippedPage
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
    with pytest.raises(InputError, match="left out: 1 empty"):
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
    assert not document.has_lines and not document.leads


def lines_of(tmp_path, name: str, text: str) -> tuple[str, list[str]]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    (found,) = read(path)
    assert isinstance(found, Document)
    return found.title, found.text.split("\n")


@pytest.mark.parametrize(
    "tag", ["object", "main", "template", "select", "title", "plaintext", "svg", "footer", "textarea", "SCRIPT"]
)
def test_a_name_in_brackets_takes_nothing_out_of_markdown(tmp_path, tag):
    text = f"# Doc\n\nFirst paragraph.\n\nUse the <{tag}> here.\n\n## Later\n\nA later paragraph.\n"
    title, lines = lines_of(tmp_path, "a.md", text)
    assert title == "Doc" and lines == ["First paragraph.", f"Use the <{tag}> here.", "Later", "A later paragraph."]


def test_an_element_of_markdown_that_begins_and_ends_is_html(tmp_path):
    text = "# Doc\n\n<script>var x;</script>\n\nText with `<script>` in code.\n"
    assert lines_of(tmp_path, "a.md", text) == ("Doc", ["Text with <script> in code."])


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("title: 1.10\n", "1.10"),
        ("title: 12:30\n", "12:30"),
        ("title: 2024-05-01\n", "2024-05-01"),
        ("title: yes\n", "yes"),
        ("title: [one, two]\n", "Head"),
        ("title: >\n  A folded\n  title\n", "A folded title"),
        ("title: |-\n  A block\n", "A block"),
        ("title: 'It''s a title'\n", "It's a title"),
        ("title: Hello # comment\n", "Hello"),
        ('title: "A: B \\"q\\""\n', 'A: B "q"'),
        ("title: 2024\n", "2024"),
        ("title: A: not YAML\n", "A: not YAML"),
        *[(f"title:{nothing}\n", "Head") for nothing in (" ", "", " null", " ~", ' ""', " [1, 2]")],
        ("tags:\n- one\n- two\n", "Head"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_front_matter_names_the_title(tmp_path, front, title, end):
    text = f"---\n{front}---\n# Head\n\nText.\n".replace("\n", end)
    assert lines_of(tmp_path, "a.md", text) == (title, ["Text."] if title == "Head" else ["Head", "Text."])


@pytest.mark.parametrize("title", ["!!bool zz", "!!int ''", "!!float ''"])
def test_a_tag_in_front_matter_that_its_text_does_not_fit_is_no_error(tmp_path, title):
    assert lines_of(tmp_path, "a.md", f"---\ntitle: {title}\n---\nText.\n") == (title, ["Text."])


def test_front_matter_of_toml_and_text_between_rules(tmp_path):
    for written, title in (("1.10", "1.10"), ("2024-05-01", "2024-05-01")):
        assert lines_of(tmp_path, "a.md", f"+++\ntitle = {written}\n+++\nText.\n") == (title, ["Text."])
    assert lines_of(tmp_path, "a.md", '+++\ntitle = "Getting Started"\n+++\nText.\n') == ("Getting Started", ["Text."])
    text = "---\nThe minutes of 3 May\nPresent were Jane and Bob.\n\n---\n"
    assert "The minutes of 3 May Present were Jane and Bob." in lines_of(tmp_path, "b.md", text)[1]


def test_the_code_of_mdx_is_left_out(tmp_path):
    text = (
        "---\ntitle: Tabs\n---\nimport Tabs from '@theme/Tabs';\nexport const x = 1;\n\nWords.\n\nimport is a word.\n"
    )
    assert lines_of(tmp_path, "a.mdx", text) == ("Tabs", ["Words.", "import is a word."])


@pytest.mark.parametrize(
    ("html", "lines"),
    [
        ("<ol start=5><li>a<li>b<li value=9>c<li>d</ol>", ["5. a", "6. b", "9. c", "10. d"]),
        ("<ol start=x><li>a</ol>", ["1. a"]),
        ("<table><tr><td><p>s</p></td><td><p>80</p><p>x</p></td></tr></table>", ["s | 80 x"]),
        ("<table><tr><td>x<br>y<td><ul><li>one<li>two</ul></table>", ["x y | one two"]),
        ("<table><tr><th></th><th>Linux</th><th>Mac</th></tr><tr><td> <td></table>", ["| Linux | Mac"]),
        ("<table><tr><td>a<table><tr><td>b<td>c</table><p>d</table>", ["a", "b | c", "d"]),
        ("<table><tr><td class=linenos><pre>1\n2</pre><td><pre>x\ny</pre></table>", ["x", "y"]),
        ("<p>10<sup>6</sup> and 10<sup>-3</sup>, x<sup>2</sup>, 1<sup>st</sup>", ["10^6 and 10^-3, x2, 1st"]),
        ("<h2><button>How?</button></h2><p>So. <button>Copy</button>", ["How?", "So."]),
        ("<h1>Macro x<button>Copy item path</button></h1><p>So.", ["Macro x", "So."]),
        (f"<table><tr><td><ul>{'<li>a' * 11}</ul><td>b</table>", [*["- a"] * 11, "b"]),
        (f"<table><tr><td><p>{'a' * 999}<p>cc<td>b</table>", ["a" * 999, "cc", "b"]),
        ("<p>a<span style='color:red;display: none'>b</span><math>c<annotation>d</annotation></math>", ["ac"]),
        (
            "<div role=tabpanel hidden>yarn add</div><div hidden=until-found>b</div><div hidden>c</div>",
            ["yarn add", "b"],
        ),
        ("<div role=navigation>a</div><div role=banner>b</div><div role=contentinfo>c</div><p>d", ["d"]),
        (
            "<main><p>contents</p><article><h3>A<a href=#a>#</a></h3><p>b<footer>Edit</footer></article></main>",
            ["A", "b"],
        ),
        ("<blockquote>To be.<footer>Hamlet</footer></blockquote>", ["To be.", "Hamlet"]),
        ("<h2>Head<span class=mw-editsection>[edit]</span></h2><p>b", ["Head", "b"]),
        (
            "<dl><dt>read(n)<a href=m.html><span class=viewcode-link><span>[source]</span></span></a><dd>Reads n bytes.</dl>",
            ["read(n)", "Reads n bytes."],
        ),
        ("<section><a class='src rightside' href=s.html>Source</a><h4>fn len(&self)</h4></section>", ["fn len(&self)"]),
        ("<h2><span class=permalink><a href=#a>&#9670;&nbsp;</a></span>open()</h2><p>b", ["open()", "b"]),
        # Javadoc's, Confluence's and DocBook's bars of links are named, and neither `nav` nor a role.
        (
            "<div class=topNav><ul class=navList><li><a href=o>Overview</a><li>Class<li><a href=t>Tree</a></ul></div><h2>Thread</h2><p>b",
            ["Thread", "b"],
        ),
        ("<ol id=breadcrumbs><li><a href=h>Home</a><li><a href=s>Space</a></ol><p>b", ["b"]),
        ("<div class=navheader><table><tr><td><a href=p>Prev</a><td><a href=n>Next</a></table></div><p>b", ["b"]),
        ("<div class=menu><p>Soup of the day <a href=o>Order</a></div>", ["Soup of the day Order"]),
        ("<ul class=links><li><a href=a>Setup</a><li><a href=b>Tests</a></ul>", ["- Setup", "- Tests"]),
        ("<div class='page with-sidebar'><h2>All pages</h2><a href=a>Setup</a></div>", ["All pages", "Setup"]),
    ],
)
def test_what_a_reader_sees_is_read(tmp_path, html, lines):
    assert lines_of(tmp_path, "a.html", f"<!DOCTYPE html><title>T</title><body>{html}") == ("T", lines)


def test_a_page_that_is_nested_too_deeply_is_set_aside_and_a_long_list_is_not(tmp_path):
    head = "<!DOCTYPE html><title>T</title><body>"
    for deep in ("<ul><li>", "<div>", "<b>"):
        (tmp_path / "a.html").write_text(head + deep * 100_000 + "words")
        (found,) = read(tmp_path / "a.html")
        assert isinstance(found, SkippedPage) and "nested" in found.reason and found.where == str(tmp_path / "a.html")
    items = "<li>one<p>two" * 20_000
    assert lines_of(tmp_path, "b.html", f"{head}<ul>{items}</ul>{'<div>x</div>' * 20_000}")[1][-1] == "x"


def test_many_buttons_in_a_heading_are_none_of_its_text(tmp_path):
    html = "<h2>Tools<button>a</button><button>b</button></h2><h3><span><button>How?</button></span><i></i></h3><p>So."
    assert lines_of(tmp_path, "a.html", f"<!DOCTYPE html><title>T</title><body>{html}") == (
        "T",
        ["Tools", "How?", "So."],
    )


def test_marks_of_footnotes_and_hidden_lines_of_code_are_no_text(tmp_path):
    """As mdBook, Sphinx, pandoc, MediaWiki and GitHub write them."""
    page = """<main><p>One<sup class="footnote-reference"><a href="#1">1</a></sup>
    two<a class="footnote-reference brackets" href="#2">[2]</a> three<a role="doc-noteref" href="#3"><sup>3</sup></a>
    four<sup class="reference"><a href="#4">[4]</a></sup> <a class="reference internal" href="x">five</a>.</p>
    <ol><li>A note. <a href="#r1">\u21a9</a></li><li>Another. <a href="#r2" role="doc-backlink">back</a></li></ol>
    <pre><code><span class="boring">fn main() {
</span>let x = 1;
<span class="boring">}</span></code></pre></main>"""
    (tmp_path / "a.html").write_text(page)
    (found,) = documents([tmp_path / "a.html"])
    assert isinstance(found, Document)
    assert found.text.splitlines() == ["One two three four five.", "1. A note.", "2. Another.", "let x = 1;"]


@pytest.mark.parametrize(
    ("charset", "declared", "word"),
    [
        ("shift-jis", "Shift_JIS", "東京"), ("cp1252", "ISO-8859-1", "“größer”"), ("iso-8859-2", "iso-8859-2", "byłoby"), ("koi8-r", "koi8-r", "Москва"),
        ("utf-8", "iso-8859-1", "größer"), ("utf-16", "utf-16", "東京"), ("utf-8", "no-such", "größer"), ("utf-8", "zip", "größer"),
    ],
)  # fmt: skip
def test_a_page_is_read_in_its_charset(tmp_path, charset, declared, word):
    page = f'<html><head><meta http-equiv="Content-Type" content="text/html; charset={declared}"><title>{word}</title></head><p>Here {word}.'
    (tmp_path / "a.html").write_bytes(page.encode(charset))
    (found,) = read(tmp_path / "a.html")
    assert (found.title, found.text) == (word, f"Here {word}.")


def test_a_page_says_its_language_its_address_and_its_date(tmp_path):
    head = (
        '<link rel=canonical href="https://e.org/c"><meta name="Author" content="Ada"><meta name=author content="Ben"><meta name=keywords content="x, ,y">'
        '<meta property="article:published_time" content="2024-05-01T10:30:00+02:00"><meta name=date content="2020"><meta name=author><meta>'
    )
    page = f'<html lang="de"><head><title>T</title>{head}</head><body><p>Guten Tag.</p></body></html>'
    (found,) = read(write(tmp_path / "a.html", page))
    assert found.fields == {
        "language": "de",
        "url": "https://e.org/c",
        "author": ["Ada", "Ben"],
        "date": "2024-05-01T10:30:00+02:00",
        "keywords": ["x", "y"],
    }
    (found,) = read(write(tmp_path / "b.html", PAGE))
    assert found.fields == {}


def test_front_matter_that_is_no_mapping_says_nothing(tmp_path):
    for number, matter in enumerate(["- a\n- b", "a: [", "", "title: [x]\nn: {a: {b: 1}}"]):
        (found,) = read(write(tmp_path / f"{number}.md", f"---\n{matter}\n---\n# T\n\nText of it.\n"))
        assert found.fields == ({"n.a.b": "1"} if number == 3 else {})


def test_what_a_page_says_of_itself_is_cut_where_it_is_long(tmp_path):
    head = f'<meta name=author content="{"a" * 5000}"><meta name=keywords content="{"k," * 5000}">'
    (found,) = read(write(tmp_path / "a.html", f"<html><head>{head}</head><body><p>Text of it.</p></body></html>"))
    assert len(found.fields["author"]) == 1000 and len(found.fields["keywords"]) == 500
