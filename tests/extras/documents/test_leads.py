"""Headings, terms and names of columns of each format lead what stands below them, and a search shows them with its hits."""

from __future__ import annotations

import json

import pytest

from realmctl.corpus.corpus import Corpus
from realmctl.corpus.document import Document
from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings
from stages.chunk import Chunk

pytest.importorskip("selectolax")


def led(tmp_path, name: str, text: str) -> dict[str, str]:
    """What each leading line of a file leads, with " | " between the lines."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    (found,) = documents([path], CorpusSettings())
    assert isinstance(found, Document)
    return {
        found.text[each.start : each.end]: " | ".join(found.text[each.end : each.until].strip("\n").split("\n"))
        for each in found.leads
    }


def test_sections_of_html(tmp_path):
    page = "<title>T</title><h1>A</h1><p>1<h2>B</h2><p>2<h3>C</h3><p>3<h2>D</h2><p>4<h1>E</h1><p>5"
    assert led(tmp_path, "a.html", page) == {
        "A": "1 | B | 2 | C | 3 | D | 4", "B": "2 | C | 3", "C": "3", "D": "4", "E": "5"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("html", "found"),
    [
        (
            "<h4>A</h4>1<div class='tip x'><h3>Tip</h3>2</div>3<h4>B</h4>4",
            {"A": "1 | Tip | 2 | 3", "Tip": "2", "B": "4"},
        ),
        ("<section><h1>A</h1>1<section><h1>B</h1>2</section>3</section>4", {"A": "1 | B | 2 | 3", "B": "2"}),
        ("<h2>A</h2>1<ul><li><h2>B</h2>2<li>3</ul>4", {"A": "1 | - B | 2 | - 3 | 4", "- B": "2"}),
        ("<div class=head><h2>A</h2></div>1<h3>B</h3>2", {"A": "1 | B | 2", "B": "2"}),
    ],
)
def test_a_heading_of_a_part_of_the_page_ends_with_it(tmp_path, html, found):
    assert led(tmp_path, "a.html", f"<title>T</title><body>{html}") == found


def test_an_index_has_few_terms_above_a_definition(tmp_path):
    terms = "".join(f"<dt>x{number}" for number in range(99))
    assert [*led(tmp_path, "a.html", f"<title>T</title><dl>{terms}<dd>1</dl>")] == ["x95", "x96", "x97", "x98"]


def test_the_title_leads_nothing_and_the_sections_below_it_stay_right(tmp_path):
    assert led(tmp_path, "a.md", "# A\n\n1\n\n## B\n\n2\n\n### C\n\n3\n\n## D\n") == {
        "B": "2 | C | 3",
        "C": "3",
        "D": "",
    }


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<dl><dt>x</dt><dd>1</dd><dt>y</dt><dd><p>2<p>3</dd></dl><p>4", {"x": "1", "y": "2 | 3"}),
        ("<dl><dt>x<dt>y<dd>1<dd>2<dt>z<dd>3</dl>4", {"x": "y | 1 | 2", "y": "1 | 2", "z": "3"}),
        ("<dl><dt>x</dt><dt>y</dt></dl><p>4", {}),
        ("<dl><dt>x</dt><dd></dd><dt>y</dt><dd>1</dd></dl>", {"y": "1"}),
        ("<dl><div><dt>x</dt><dd>1</dd></div></dl><p>4", {"x": "1"}),
        ("<dl><dt>x<dd>1<dl><dt>y<dd>2</dl>3</dl>4", {"x": "1 | y | 2 | 3", "y": "2"}),
        ("<dl><dt>x<dd>1<h2>A</h2>2<dt>y<dd>3</dl><p>4", {"x": "1 | A | 2", "A": "2", "y": "3"}),
        ("<table><tr><th>n<th>m<tr><td>1<td>2<tr><td>3<td>4</table>5", {"n | m": "1 | 2 | 3 | 4"}),
        ("<table><thead><tr><th>n<th>m<tbody><tr><td>1<td>2</table>5", {"n | m": "1 | 2"}),
        ("<table><tr><th>n<th>m</table>5", {}),
        ("<table><tr><th>n<td>1<tr><th>m<td>2</table>5", {}),
        ("<table><tr><th>n<td><table><tr><th>a<th>b<tr><td>1<td>2</table></table>", {"a | b": "1 | 2"}),
    ],
)
def test_terms_and_names_of_columns_of_html(tmp_path, html, found):
    shown = led(tmp_path, "a.html", f"<title>T</title><body>{html}")
    assert {key: value.replace(" |  | ", " | ") for key, value in shown.items()} == found


def test_a_search_shows_the_section_of_a_hit(realmctl, tmp_path):
    texts = [" ".join(f"It eats number {20 * part + each} of many." for each in range(20)) for part in range(4)]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.html").write_text(
        f"<title>Food</title><h1>Otter</h1><h2>In winter</h2><p>{texts[0]}<h1>Badger</h1><p>{texts[1]}"
    )
    (tmp_path / "docs/b.md").write_text(f"# Drink\n\n## Otter\n\n{texts[2]}\n\n## Heron\n\n{texts[3]}\n")
    workspace = tmp_path / "w"
    made = Chunk(corpus=(tmp_path / "docs",), tokenizer="train:300", max_wordpieces=64, workers=1).make(
        workspace / "blocks"
    )
    code, out, err = realmctl("search", "13", "-k", "99", "--json", "-w", workspace, "--method", "bm25")
    assert code == 0, err
    (hit,) = json.loads(out)["results"][0]["hits"]
    assert (hit["title"], hit["section"]) == ("Food", "Otter / In winter") and "number 13 " in hit["text"]
    assert {block.section for block in Corpus(made)} >= {"Otter / In winter", "Badger", "Otter", "Heron"}
    code, out, err = realmctl("search", "13", "-k", "1", "-w", workspace, "--method", "bm25")
    assert code == 0 and out.startswith("1. Food / Otter / In winter   score"), out


DEFINITIONS = {
    "a.html": "<title>T</title><body><details><summary>ter</summary><p>def</p></details><dl><dt>dos</dt><dd>zwei</dd></dl>",
    "a.rst": "T\n=\n\nter\n   def\n\n.. py:function:: dos(a)\n\n   zwei\n\nafter\n",
    "options.rst": "T\n=\n\nP\n\n-t, --ter  def\n--dos      zwei\n\nafter\n",
    "fields.rst": "T\n=\n\nP\n\n:ter: def\n:dos: zwei\n\nafter\n",
    "a.adoc": "= T\n\nter:: def\ndos::\nzwei\n\nafter\n",
    "a.org": "* T\n- ter :: def\n- dos ::\n  zwei\n",
    "a.md": "# T\n\nter\n\n: def\n\ndos\n\n:   zwei\n\nafter\n",
    "a.1": ".TH A 1\n.SH T\n.TP\n.B ter\ndef\n.PP\n\\fBdos\\fR\n.RS 4\nzwei\n.RE\n.PP\nafter\n",
    "b.1": ".Dd May 1, 2020\n.Dt A 1\n.Os\n.Sh T\n.Bl -tag\n.It Ar ter\ndef\n.It Ar dos\nzwei\n.El\n.Pp\nafter\n",
    "a.dbk": "<article><title>T</title><variablelist><varlistentry><term>ter</term><listitem><para>def</para></listitem></varlistentry>"
    "</variablelist><glosslist><glossentry><glossterm>dos</glossterm><glossdef><para>zwei</para></glossdef></glossentry></glosslist></article>",
    "a.tex": "\\documentclass{article}\\begin{document}\\begin{description}\\item[ter] def\\item[dos] zwei\\end{description}\\end{document}",
    "a.pod": "=head1 T\n\n=over\n\n=item ter\n\ndef\n\n=item dos\n\nzwei\n\n=back\n\nafter\n",
    "a.textile": "h1. T\n\n- ter := def\n- dos := zwei\n",
    "a.wiki": "; ter : def\n; dos\n: zwei\n",
    "a.typ": "/ ter: def\n/ dos: zwei\n",
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_term_leads_its_definition_in_every_format(tmp_path, name):
    found = led(tmp_path, name, DEFINITIONS[name])
    for term, definition in (("ter", "def"), ("dos", "zwei")):
        (said,) = (text for line, text in found.items() if term in line)
        assert said.removeprefix(": ") == definition


def test_what_stands_below_the_title_of_a_source_in_rest_is_no_metadata(tmp_path):
    """pandoc makes metadata of a list of definitions there, which it does not show."""
    text = "T\n=\n\nOnly section\n------------\n\n:Author: me\n:Use: more\n\nter\n   def\n"
    assert led(tmp_path, "a.rst", text) == {
        "Only section": "Author | me | Use | more | ter | def", "Author": "me", "Use": "more", "ter": "def"
    }  # fmt: skip
