"""Documents read from the parts of a dump, one part after the other, are those of a single reader, and so is the error."""

from __future__ import annotations

import gzip
import re
import tracemalloc
import xml.sax.saxutils as sax

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document
from realmctl.corpus.formats.wikipedia import read_dump
from realmctl.corpus.settings import CorpusSettings
from realmctl.corpus.wiki import dump_parts
from realmctl.errors import InputError
from realmctl.inputs import streams

HEADS = [
    "<mediawiki>",
    '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<mediawiki xml:lang="de">\n  ',
    '<mediawiki>\n<siteinfo>\n<namespaces><namespace key="14">Kategorie</namespace>\n</namespaces>\n</siteinfo>\n',
]
GAPS = ["", "\n  ", " " * 63, " " * 200, "\n\t"]
HIDDEN = ["<![CDATA[</page>\n<page>]]>", "<!-- </page>\n<page> -->", "<?x </page>\n<page> ?>"]
ODD = [*HIDDEN[1:], "<x>", "</x>", "<page/>", "<page>", "<page x=''>", "</page >"]
DAMAGE = ["</page>", "<title>", "</mediawiki>", "&nothing;", "\x01", "<page", "<![CDATA[", "<!DOCTYPE m []>", "é<"]
words = st.sampled_from(["<page>", "</page>", "</page>\n<page>", "&amp;", "[[a]]", "\n", "ü", "日本", "𝄞", " "])
texts = st.lists(words | st.text("xyé\n", max_size=9), max_size=12).map("".join)


def page(title: str, text: str, number: int, hidden: str = "") -> str:
    revision = f"<revision><id>1</id><text>{hidden}{sax.escape(text)}</text></revision>"
    return f"<page>\n<title>{sax.escape(title)}</title><ns>{number % 5 // 4}</ns><id>{number}</id>{revision}</page>"


@st.composite
def dumps(draw: st.DrawFn) -> bytes:
    """Dumps of random pages. Some hold what no dump holds, some are damaged, some are cut."""
    gap, line_end = draw(st.sampled_from(GAPS)), draw(st.sampled_from(["\n", "\r\n", " "]))
    pages = [page(draw(texts), draw(texts), number) for number in draw(st.lists(st.integers(0, 99), max_size=12))]
    trait = draw(st.sampled_from(["none", "none", "hidden", "odd", "insert", "cut"]))
    if trait in ("hidden", "odd"):
        extra = page("A", "b", 3, draw(st.sampled_from(HIDDEN))) if trait == "hidden" else draw(st.sampled_from(ODD))
        pages.insert(draw(st.integers(0, len(pages))), extra)
    data = (draw(st.sampled_from(HEADS)) + gap.join(pages) + "\n</mediawiki>\n").replace("\n", line_end).encode()
    at = draw(st.integers(0, len(data)))
    if trait == "insert":
        return data[:at] + draw(st.sampled_from(DAMAGE)).encode() + data[at:]
    return data[:at] if trait == "cut" else data


def outcome(path, parts):
    """What is found in these parts, or the error without its column. A column counts from the cut."""
    try:
        found = [page for part in parts for page in read_dump(CorpusFile(path, CorpusSettings(), path.name), part)]
    except InputError as error:
        return re.sub(r", column \d+", "", str(error))
    return found, [page.clean.keywords for page in found if isinstance(page, Document)]


@given(dumps(), st.integers(1, 900), st.integers(1, 300))
@settings(max_examples=150)
def test_parts_are_read_as_the_whole_is(tmp_path_factory, data, size, piece):
    path = tmp_path_factory.getbasetemp() / "d.xml"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "READ_BYTES", piece)
        found = list(dump_parts.parts(path, size))
        assert outcome(path, found) == outcome(path, [dump_parts.DumpPart()])
    assert found == list(dump_parts.parts(path, size)), "wherever a piece of the file ends"
    assert [part.end for part in found[:-1]] == [part.begin for part in found[1:]] and found[-1].end is None
    assert not any(part.rest for part in found[:-1])
    assert all(part.end - part.begin >= size for part in found[:-1])


def write(path, count: int, gap: str = "\n  ", middle: str = "<page></page>", begin: str = HEADS[2]):
    pages = [page(f"Page {number}", "text\n" * 9, 5 * number) for number in range(count)]
    pages.insert(count // 2, middle)
    path.write_bytes((begin + gap.join(pages) + "\n</mediawiki>\n").encode())
    return path


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("gap", ["", "\n  ", "\r\n", " " * 64])
def test_a_usual_dump_is_cut_after_each_page_that_reaches_the_size(tmp_path, head, gap):
    path = write(tmp_path / "d.xml", 8, gap, begin=head)
    assert [part.rest for part in dump_parts.parts(path, 1)] == [False] * 9
    assert [part.rest for part in dump_parts.parts(path, 2**20)] == [False]


@pytest.mark.parametrize(
    "odd",
    [
        *HIDDEN[1:],
        *(page("A", "b", 3, hidden) for hidden in HIDDEN),
        "<x></x>",
        "<page />",
        "<page><page></page></page>",
    ],
)
def test_from_an_odd_place_on_the_dump_is_one_part(tmp_path, odd):
    path = write(tmp_path / "d.xml", 8, middle=odd)
    assert outcome(path, dump_parts.parts(path, 1)) == outcome(path, [dump_parts.DumpPart()])
    *usual, rest = dump_parts.parts(path, 1)
    assert rest.rest and not any(part.rest for part in usual) and 3 <= len(usual) <= 4
    assert rest.begin <= path.read_bytes().index(odd.encode()) < rest.begin + 200


@pytest.mark.parametrize(
    "head",
    [
        "<rss>",
        "<!-- x --><mediawiki>",
        "<mediawiki><x>",
        "<mediawiki><siteinfo><page/></siteinfo>",
        "<mediawiki><siteinfo><siteinfo></siteinfo>",
        "<mediawiki><siteinfo><![CDATA[</siteinfo>]]></siteinfo>",
        f"<mediawiki>{' ' * 2**16}",
    ],
)
def test_a_dump_with_an_unusual_head_is_not_cut(tmp_path, head):
    path = write(tmp_path / "d.xml", 4, begin=head)
    assert list(dump_parts.parts(path, 1)) == [dump_parts.DumpPart(rest=True)]


def test_a_compressed_dump_is_not_cut(tmp_path):
    path = tmp_path / "d.xml.gz"
    path.write_bytes(gzip.compress(write(tmp_path / "d.xml", 4).read_bytes()))
    (whole,) = dump_parts.parts(path, 1)
    assert outcome(path, [whole])[0][0].title == "Page 0" and whole.rest


def test_an_error_in_a_part_has_the_line_of_the_file_and_the_column_of_an_indented_page(tmp_path):
    path = write(tmp_path / "d.xml", 8, middle="<page>\n<title>&nothing;</title></page>", begin=HEADS[1])
    line = path.read_text().partition("&nothing")[0].count("\n") + 1
    found = outcome(path, dump_parts.parts(path, 1))
    assert found.startswith(f"{path}:{line}: broken XML (undefined entity")
    for damage in ("<page>\n<title>&nothing;</title></page>", "<page>&nothing;</page>"):
        write(path, 8, middle=damage, begin=HEADS[1])
        messages = []
        for parts in (dump_parts.parts(path, 1), [dump_parts.DumpPart()]):
            with pytest.raises(InputError, match="column") as error:
                [raw for part in parts for raw in read_dump(CorpusFile(path, CorpusSettings(), path.name), part)]
            messages.append(str(error.value))
        assert messages[0] == messages[1]


def test_a_tag_too_long_is_refused_at_its_byte_of_the_file(tmp_path):
    """It is refused at the end of a piece, so the pieces have to end at the same places."""
    before = page("Long", "x" * (2**17 + 5000), 1) + page("A", "b", 3)
    path = write(tmp_path / "d.xml", 4, middle=f"{before}<page a='{'x' * (2**22 + 2**17)}'>")
    expected = outcome(path, [dump_parts.DumpPart()])
    assert f"MiB at byte {path.read_bytes().index(b'<page a=')}." in expected
    assert outcome(path, dump_parts.parts(path, 1)) == expected


def test_a_dump_that_became_shorter_is_an_error(tmp_path):
    path = write(tmp_path / "d.xml", 4)
    first, *_ = dump_parts.parts(path, 1)
    path.write_bytes(path.read_bytes()[: first.end - 1])
    assert "became shorter" in outcome(path, [first])


def test_a_dump_without_a_tag_for_long_is_searched_in_bounded_memory(tmp_path):
    path = tmp_path / "d.xml"
    path.write_bytes(b"<mediawiki><page>")
    with path.open("r+b") as file:
        file.truncate(2**25)
    tracemalloc.start()
    found = list(dump_parts.parts(path, 1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [dump_parts.DumpPart(11, 11)] and peak < 2**21
