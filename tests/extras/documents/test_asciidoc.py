"""AsciiDoc: conditions, comments, included files and cells as Asciidoctor reads them."""

from __future__ import annotations

import pytest

from realmctl.extras.documents import by_pandoc
from realmctl.extras.documents.asciidoc import as_text
from tests.extras.documents.test_by_pandoc import read

pytest.importorskip("selectolax")
needs_pandoc = pytest.mark.skipif(by_pandoc._pandoc() is None, reason="needs pandoc")

GUIDE = """= Guide
:draft:
:!final:

ifdef::draft[]
A draft.

ifdef::other[]
Not inside.
endif::[]
ifdef::other,draft[]
Either.

endif::other,draft[]
endif::draft[]
ifdef::other+draft[]
Not both.
endif::[]
ifndef::final[Not final.]
ifdef::final[]
Final.
endif::[]

ifeval::["{backend}" == "html5"]
On the web.
endif::[]
ifeval::["{backend}" != "html5"]
In print.
endif::[]

////
A comment.
////

// Another comment.
include::missing.adoc[leveloffset=+1]

|===
|Name|Size
|a|m
a|listed |h
2+|wide
|x\\|y |z
|===

----
// kept|as it is
a|b
----
"""


@needs_pandoc
def test_a_source_of_asciidoc_reads_as_its_page(tmp_path):
    (tmp_path / "a.adoc").write_text(GUIDE)
    assert read(tmp_path / "a.adoc").text.split("\n") == [
        "A draft.",
        "Either.",
        "Not final.",
        "On the web.",
        "Name | Size",
        "a | m",
        "listed | h",
        "wide",
        "x|y | z",
        "// kept|as it is",
        "a|b",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "= A\n\nText with a|bar and include::x inside.\n",
        "....\n////\nkept\n....\n",
        "|===\n|a |b\n2+|c e|d\n|===\n",
        ":a: 1\n\n{a}\n",
    ],
)
def test_what_both_read_alike_stays(source):
    assert as_text(source) == source


@needs_pandoc
def test_authors_and_dates_below_a_title_are_text(tmp_path):
    (tmp_path / "a.adoc").write_text("= Guide\nAnn Poe\nv1, 2020-05-04\n\nWords.\n")
    assert read(tmp_path / "a.adoc").text.split("\n") == ["Ann Poe", "2020-05-04", "Words."]
    (tmp_path / "a.tex").write_text(
        "\\title{Mills}\\author{Ann Poe}\\date{May}\\begin{document}\\maketitle Words.\\end{document}"
    )
    assert read(tmp_path / "a.tex").text.split("\n") == ["Ann Poe", "May", "Words."]
