from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from realmctl.corpus.wiki import dump
from realmctl.corpus.wiki.wikitext import prose
from realmctl.execution.deadline import deadline


def text(wikitext: str) -> str:
    return prose(wikitext)[0]


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("'''Bold''' and ''italic'' and '''''both'''''.", "Bold and italic and both."),
        ("''The Times'''s owner. The '''cat'''s.", "The Times's owner. The cats."),
        ("A [[link]], [[Page (x)|label]], [[bus]]es, [[Paris (city)|]].", "A link, label, buses, Paris."),
        ("a [[#Section|below]] b", "a below b"),
        ("x [[File:a.jpg|thumb|A [[cat]] on a [http://x.org mat]]] y", "x y"),
        ("x [[Image:a.jpg|left|50px|Caption [[a|b]] with {{nowrap|x}}]]\n\ny", "x\ny"),
        ("x [[Category:Birds|Key]]", "x"),
        ("x [[:Category:Birds|birds]] and [[:Category:Birds]]", "x birds and Birds"),
        ("x [[fr:Chat]] [[de:Katze]] y [[wikt:cat|cat]] [[s:Book]]", "x y cat Book"),
        ("see [http://x.org the site] and [http://x.org] and [//x.org it].", "see the site and and it."),
        ("x<ref>note {{cite|a}}</ref> y<ref name=a/> z<ref name='b' group=c />.", "x y z."),
        ("a<!-- hidden [[ {{ --> b", "a b"),
        ("a <nowiki>[[not]] ''a'' {{link}}</nowiki> b", "a [[not]] ''a'' {{link}} b"),
        ("E <math>E=mc^2</math> and <math>x</math>.", "E and x."),
        ("10<sup>6</sup> m<sup>2</sup> H<sub>2</sub>O 2<sup>nd</sup>", "10^6 m2 H2O 2nd"),
        ("a<br>b<br/>c <span style='x'>d</span> <small>e</small>", "a b c d e"),
        ("a&nbsp;b &ndash; c &amp; d &#233;&shy;", "a b – c & d é"),
        ("1 &lt; 2 and a < b", "1 < 2 and a < b"),
        ("__NOTOC__ a __FORCETOC__", "a"),
        (
            "A ({{IPA|x}}) b ({{lang-xx}}, born 1900) c (; ) d (e, {{IPA|f}}) g [ ] .",
            "A b (born 1900) c d (e) g [ ].",
        ),
        ("word {{citation needed}}, next {{cn}}.", "word, next."),
        ("{{Infobox person\n| name = X\n| birth = {{birth date|1879|3|14}}\n}}\nHe lived.", "He lived."),
        ("before\n{| class='x'\n! h || i\n|-\n| a || [[b]]\n{|\n| inner\n|}\n|}\nafter", "before\nafter"),
        ("* one\n* two.\n** three\n# four\n; term : meaning", "one.\ntwo.\nthree.\nfour.\nterm: meaning."),
        ("soft\nwrapped line\n\nnext", "soft wrapped line\nnext"),
        ("== Life ==\nHe.\n=== Early ===\nShe.", "He.\nShe."),
        ("a\n== References ==\n* r\n=== Notes ===\n* n\n== Works ==\nb", "a\nb"),
        ("a\n==External links==\n* l\n[[Category:x]]", "a"),
        ("<blockquote>Quote.</blockquote><p>Para.</p><ul><li>item</li></ul>", "Quote.\nPara.\nitem."),
        ("<gallery>\nFile:a.jpg|cap\n</gallery>text", "text"),
        ("One.<ref>a</ref>Two.<ref name=b/> Three", "One. Two. Three"),
        ("<math>\\frac{a}</math>, which is\n\n<math>\\sum</math>.\n* [[H. Jr.]]", "which is\nH. Jr."),
        ("a\u200bb\u00a0c\u2009d\ue000", "ab c d"),
    ],
)
def test_what_a_reader_sees(wikitext, expected):
    assert text(wikitext) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{convert|5|km|mi}}", "5 km"),
        ("{{convert|5|to|10|km}}", "5 to 10 km"),
        ("{{cvt|3|-|4|ft}}", "3-4 ft"),
        ("{{lang|fr|mot [[juste]]}}", "mot juste"),
        ("{{lang-de|Wort}}", "Wort"),
        ("{{transl|ja|kana}}", "kana"),
        ("{{nowrap|a {{nobr|b}}}}", "a b"),
        ("{{birth date|1879|3|14|df=yes}}", "14 March 1879"),
        ("{{death date and age|1955|4|18|1879|3|14}}", "April 18, 1955"),
        ("{{start date|1999|12}}", "December 1999"),
        ("{{as of|2010|5}}", "As of May 2010"),
        ("{{as of|2010|lc=y}}", "as of 2010"),
        ("{{circa|1900}}", "c. 1900"),
        ("{{frac|1|2}}", "1/2"),
        ("{{frac|2|1|2}}", "2 1/2"),
        ("{{val|1.5|e=3|u=m}}", "1.5×10^3 m"),
        ("{{chem|H|2|O}}", "H2O"),
        ("{{nihongo|Tokyo|東京|Tōkyō}}", "Tokyo (東京, Tōkyō)"),
        ("{{HMS|Beagle}}", "HMS Beagle"),
        ("{{ill|Some One|de}}", "Some One"),
        ("{{small|a=b}}", ""),
        ("{{small|1=a=b}}", "a=b"),
        ("{{formatnum:1234}}", "1234"),
        ("{{quote|To be.|Shakespeare}}", "To be."),
        ("a{{snd}}b", "a – b"),
        ("it{{'s}}", "it's"),
        ("{{Main|Other page}}", ""),
        ("{{unknown|words}}", ""),
        ("{{flag|France}}", "France"),
        ("{{hlist|a|b}}", "a, b"),
    ],
)
def test_templates_that_carry_words(template, expected):
    assert text(template) == expected


def test_anchors_are_offsets_into_the_clean_text():
    source = (
        "{{Infobox|x=[[No]]}}The ''[[Gare du Nord|'''North''' station]]'' in "
        "[[paris]]ian [[the  arrondissement#10th|10th]] ([[ ]]).\n* [[A_b]]"
    )
    text, links = prose(source)
    assert text == "The North station in parisian 10th.\nA_b."
    assert [(text[a:b], target) for a, b, target in links] == [
        ("North station", "Gare du Nord"),
        ("parisian", "Paris"),
        ("10th", "The  arrondissement"),
        ("A_b", "A b"),
    ]


def test_the_sites_own_names_for_files_and_categories():
    media = dump.media_names({"Datei": 6, "Kategorie": 14})
    assert prose("x [[Datei:a.jpg|mini|Ein [[Bild]]]] [[Kategorie:Y]]", media) == ("x", ())


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("{{Infobox\n| a = b\n| c = [[d]]\n\nProse goes on.", "Prose goes on."),
        ("{| class=x\n|-\n| cell\nProse goes on.", "Prose goes on."),
        ("a [[b c d\n\nProse [[goes]] on.", "a b c d\nProse goes on."),
        ("a [[B|b c d\n\nProse goes on.", "a b c d\nProse goes on."),
        ("[[File:x.jpg|thumb|caption\n\nProse goes on.", "Prose goes on."),
        ("a }} b ]] c |} d", "a b c d"),
        ("a<ref>note\n\nProse<ref>n</ref> goes on.", "anote\nProse goes on."),
        ("a<ref>note never closed", "anote never closed"),
        ("a <!-- comment never closed\nProse.", "a Prose."),
        ("{{quote|a {{nowrap|b}} c", ""),
    ],
)
def test_what_does_not_balance_does_not_spoil_the_rest(wikitext, expected):
    assert text(wikitext) == expected


TOKENS = [
    "[[",
    "]]",
    "{{",
    "}}",
    "{|",
    "|}",
    "|",
    "'''",
    "''",
    "<ref>",
    "</ref>",
    "<!--",
    "-->",
    "\n",
    "\n\n",
    "==",
    "*",
    "[http://a b]",
    "[[File:",
    "<nowiki>",
    "</nowiki>",
    "<br>",
    "a",
    "B c",
    "&nbsp;",
    "&#xe8ff;",
    "\ue000",
    "{{lang|",
    "<math>",
    "(",
    ")",
    ",",
    " ",
    "http://x",
    "#",
]


@given(st.lists(st.sampled_from(TOKENS) | st.text(max_size=5), max_size=60).map("".join))
@example("{[[{")
@example("{''{ and }[[}")
@settings(max_examples=400, deadline=None)
def test_any_text_gives_clean_lines_and_anchors_that_fit(wikitext):
    text, links = prose(wikitext)
    last = 0
    for start, end, target in links:
        assert last <= start < end <= len(text)
        assert target and target == target.strip()
        assert "\n" not in text[start:end]
        last = end
    assert not re.search("[\ue000-\uf8ff]", text)
    assert "  " not in text and "\n\n" not in text
    if "<nowiki>" not in wikitext and "&" not in wikitext:
        assert not re.search(r"\{\{|''|<ref>", text)


HOSTILE = {
    "links": "[[" * 100_000,
    "files": "[[File:" * 60_000,
    "files and links": "[[File:a|[[b" * 40_000,
    "templates": "{{" * 100_000,
    "named templates": "{{nowrap|" * 50_000 + "x" * 50_000 + "}}" * 50_000,
    "tables": "\n{|" * 60_000,
    "mixed": "{{\n{|" * 50_000 + "}}" * 50_000,
    "refs": "<ref>" * 60_000,
    "refs in paragraphs": "<ref>\n\n" * 40_000 + "</ref>",
    "comments": "<!--" * 60_000,
    "nowiki": "<nowiki>" * 40_000,
    "tags": "<" * 200_000,
    "open tag": "<span " * 60_000,
    "quotes": "'" * 200_001,
    "quote runs": "a'''s " * 50_000,
    "equals": "=" * 200_000,
    "headings": "==a\n" * 60_000,
    "parentheses": "(" * 200_000,
    "commas": "( , " * 60_000,
    "commas only": "," * 200_000,
    "spaces": " " * 300_000,
    "lines": "\n" * 300_000,
    "bars": "{{nowrap|" + "|" * 200_000 + "}}",
    "linked bars": "{{nowrap|[[" + "|" * 200_000 + "}}",
    "entities": "&" * 200_000,
    "switches": "_" * 200_000,
    "urls": "[http://" * 50_000,
    "url": "[http://a" + " " * 200_000,
    "link bars": "[[a|" * 60_000,
    "semicolons": "(;" * 100_000,
    "pipes in a line": "\n! a" + " b" * 100_000,
    "blank table lines": "\n" + " \t" * 100_000 + "x",
    "powers": "1<sup>" * 50_000,
    "colons": ": " * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_linear_time(name):
    """Anything worse than linear would take minutes on these."""
    with deadline(20):
        prose(HOSTILE[name])


def test_the_excerpt_is_clean(shared_data):
    path = shared_data / "enwiki-excerpt-pages-articles.xml.bz2"
    found = [prose(page.text) for page in dump.pages(path) if page.namespace == 0 and not page.redirect]
    whole = "\n".join(text for text, _ in found)
    residue = {
        mark: whole.count(mark)
        for mark in (
            "[[",
            "]]",
            "{{",
            "}}",
            "''",
            "<ref",
            "</",
            "Category:",
            "File:",
            "thumb|",
            "__",
            "&nbsp;",
            "  ",
        )
    }
    assert {mark: count for mark, count in residue.items() if count} == {}
    assert not re.findall(r"\(\s*[,;)]|\w ,\s|^[*#:;|!=]", whole, re.MULTILINE)
    assert len(re.findall(r"\|", whole)) <= 5
    assert len(whole.split()) > 435_000
    assert sum(len(links) for _, links in found) > 20_000


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("First (see\n\n{{table}}\n\n). Then more.", "First (see\n\nThen more."),
        (":<math>\\frac{a}{b}</math>.\nThen.", "Then."),
        ("*{{cite book}}. First of a series.", "First of a series."),
        ("...and so on.", "...and so on."),
        (".NET is a framework.", ".NET is a framework."),
    ],
)
def test_marks_that_dropped_markup_left_at_the_start_of_a_line_go_too(source, expected):
    """A block began with the half-line ")."."""
    found = [line for line in prose(source)[0].split("\n") if line]
    assert found == [line for line in expected.split("\n") if line]
