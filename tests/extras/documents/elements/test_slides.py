"""Each shape of a slide with words of its own: they come out once, in order and apart, and what no reader sees stays out."""

from __future__ import annotations

import pytest

from tests.extras.documents.elements.office_files import slides_file
from tests.extras.documents.elements.snippets import faults, filled
from tests.extras.documents.test_by_pandoc import read

pytest.importorskip("selectolax")


def paragraph(inner: str, properties: str = "") -> str:
    return f"<a:p><a:pPr>{properties}</a:pPr>{inner}</a:p>"


def run(text: str) -> str:
    return f"<a:r><a:rPr/><a:t>{text}</a:t></a:r>"


def shape(inner: str, place: str = "", properties: str = "") -> str:
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="~" descr="~" {properties}/><p:cNvSpPr/><p:nvPr>{place}</p:nvPr></p:nvSpPr>'
        f"<p:spPr/><p:txBody><a:bodyPr/><a:lstStyle/>{inner}</p:txBody></p:sp>"
    )


def frame(inner: str) -> str:
    return (
        '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="1" name="~"/></p:nvGraphicFramePr>'
        f'<a:graphic><a:graphicData uri="http://example.org/~">{inner}</a:graphicData></a:graphic></p:graphicFrame>'
    )


def group(inner: str) -> str:
    return f'<p:grpSp><p:nvGrpSpPr><p:cNvPr id="1" name="~"/></p:nvGrpSpPr>{inner}</p:grpSp>'


def cell(inner: str, properties: str = "") -> str:
    return f"<a:tc {properties}><a:txBody><a:bodyPr/>{inner}</a:txBody></a:tc>"


LINE, WIDE, MERGED = paragraph(run("@")), 'gridSpan="2"', 'hMerge="1"'
ELEMENTS = [
    ("p:sp", shape(LINE + LINE)),
    ("body", shape(LINE + LINE, '<p:ph idx="1"/>')),
    ("subTitle", shape(LINE, '<p:ph type="subTitle"/>')),
    ("two runs", shape(paragraph(run("@ ") + run("@")))),
    ("a:br", shape(paragraph(run("@") + "<a:br/>" + run("@")))),
    ("a:tab", shape(paragraph(run("@") + run("\t@")))),
    ("a:fld", shape(paragraph(run("@ ") + '<a:fld id="{1}" type="datetime1"><a:t>@</a:t></a:fld>'))),
    ("a:hlinkClick", shape(paragraph('<a:r><a:rPr><a:hlinkClick r:id="x"/></a:rPr><a:t>@</a:t></a:r>'))),
    ("a:buChar", shape(paragraph(run("@"), '<a:buChar char="-"/>'))),
    ("a:buAutoNum", shape(paragraph(run("@"), '<a:buAutoNum type="arabicPeriod"/>'))),
    ("p:grpSp", group(shape(LINE) + group(shape(LINE)) + shape(LINE))),
    (
        "a:tbl",
        frame(f"<a:tbl><a:tr>{cell(LINE)}{cell(LINE)}</a:tr><a:tr>{cell(LINE)}{cell(LINE + LINE)}</a:tr></a:tbl>"),
    ),
    ("merged cells", frame(f"<a:tbl><a:tr>{cell(LINE, WIDE)}{cell(paragraph(run('~')), MERGED)}</a:tr></a:tbl>")),
    ("a table in a group", group(frame(f"<a:tbl><a:tr>{cell(LINE)}</a:tr></a:tbl>"))),
    (
        "mc:AlternateContent",
        f"<mc:AlternateContent><mc:Choice>{shape(LINE)}</mc:Choice><mc:Fallback>{shape(paragraph(run('~')))}</mc:Fallback></mc:AlternateContent>",
    ),
    (
        "a choice without text",
        f"<mc:AlternateContent><mc:Choice><p:contentPart/></mc:Choice><mc:Fallback>{shape(LINE)}</mc:Fallback></mc:AlternateContent>",
    ),
    (
        "a14:m",
        shape(
            paragraph(
                run("@ ")
                + "<mc:AlternateContent><mc:Choice><a14:m><m:oMath><m:r><m:t>@</m:t></m:r></m:oMath></a14:m></mc:Choice><mc:Fallback/></mc:AlternateContent>"
            )
        ),
    ),
    ("hidden", shape(paragraph(run("~")), properties='hidden="1"')),
    ("ftr", shape(paragraph(run("~")), '<p:ph type="ftr"/>')),
    ("sldNum", shape(paragraph(run("~")), '<p:ph type="sldNum"/>')),
    ("c:chart", frame('<c:chart r:id="chart"/>')),
    ("dgm:relIds", frame('<dgm:relIds r:dm="diagram"/>')),
    ("p:cxnSp", "<p:cxnSp><p:nvCxnSpPr/></p:cxnSp>"),
    ("p:pic", '<p:pic><p:nvPicPr><p:cNvPr id="1" name="~" descr="~"/></p:nvPicPr></p:pic>'),
]
CHART = (
    "<c:title><c:tx><c:rich><a:p><a:r><a:t>Harvest</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser>"
    "<c:tx><c:strRef><c:f>Sheet1!$A$1</c:f><c:strCache><c:pt><c:v>Barley</c:v></c:pt></c:strCache></c:strRef></c:tx>"
    "<c:cat><c:numRef><c:numCache><c:formatCode>General</c:formatCode><c:pt><c:v>1901</c:v></c:pt><c:pt><c:v>1902</c:v></c:pt></c:numCache>"
    "</c:numRef></c:cat><c:val><c:numRef><c:numCache><c:pt><c:v>77.5</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:barChart>"
    "</c:plotArea>"
)
DIAGRAM = "<dgm:ptLst><dgm:pt><dgm:t><a:p><a:r><a:t>Sow</a:t></a:r></a:p></dgm:t></dgm:pt><dgm:pt><dgm:t><a:p><a:r><a:t>Reap</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst>"
NOTES = shape(paragraph(run("Ask the miller.")) + paragraph(run("Then stop.")), '<p:ph type="body"/>') + shape(
    paragraph(run("7")), '<p:ph type="sldNum"/>'
)


def test_the_words_of_each_shape_come_out_once_in_order_and_apart(tmp_path):
    made = filled(ELEMENTS)
    title = shape(paragraph(run("The farm")), '<p:ph type="title"/>')
    last = shape(paragraph(run("The end")), '<p:ph type="ctrTitle"/>')
    secret = "hidden" + shape(paragraph(run("Secret")))
    found = read(slides_file(tmp_path / "a.pptx", [made.text + title, secret, last], NOTES, CHART, DIAGRAM))
    assert faults(made, found.text) == {}
    assert (found.title, found.lost) == ("The farm", "")
    lines = found.text.split("\n")
    assert lines[lines.index("Harvest") :] == [
        "Harvest",
        "Barley",
        "1901 | 1902",
        "Sow",
        "Reap",
        "Notes: Ask the miller.",
        "Then stop.",
        "The end",
    ]
    assert [lead.end for lead in found.leads] == [len(found.text)]


def test_words_that_are_not_taken_are_told(tmp_path):
    strange = f"<p:strange><p:nvStrangePr/><p:inner><p:txBody>{paragraph(run('Taken'))}</p:txBody></p:inner><p:other>{paragraph(run('two words'))}</p:other></p:strange>"
    found = read(slides_file(tmp_path / "a.pptx", [shape(paragraph(run("Kept"))), strange]))
    assert found.text.split("\n") == ["Kept", "Taken"]
    assert found.lost == "2 of its 4 words (50.0%), such as 'two', 'words'"


def test_what_lies_beside_a_slide_is_left_out(tmp_path):
    def at(left: int, top: int, words: str) -> str:
        place = f'<p:spPr><a:xfrm><a:off x="{left}" y="{top}"/><a:ext cx="100" cy="50"/></a:xfrm></p:spPr>'
        return shape(paragraph(run(words))).replace("<p:spPr/>", place)

    shown = at(0, 0, "One") + at(-99, -49, "two") + at(999, 499, "three") + shape(paragraph(run("four")))
    beside = at(-100, 0, "left") + at(0, -50, "above") + at(1000, 0, "right") + at(0, 500, "below")
    made = slides_file(tmp_path / "a.pptx", [beside + shown + group(beside)], size='<p:sldSz cx="1000" cy="500"/>')
    found = read(made)
    assert (found.text.split("\n"), found.lost) == (["One", "two", "three", "four"], "")
    unsized = read(slides_file(tmp_path / "b.pptx", [shown + at(-100, 0, "left")]))
    assert unsized.text.split("\n")[-1] == "left"
