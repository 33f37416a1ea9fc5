"""Each element of a Word document with words of its own: they come out once, in order and apart, and what no reader sees stays out."""

from __future__ import annotations

import pytest

from realmctl.extras.documents import by_pandoc
from tests.extras.documents.elements.office_files import word_file
from tests.extras.documents.elements.snippets import faults, filled
from tests.extras.documents.test_by_pandoc import read

pytest.importorskip("selectolax")
pytestmark = pytest.mark.skipif(by_pandoc._pandoc() is None, reason="needs pandoc")


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(inner: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner}</w:p>"


def in_line(inner: str) -> str:
    """A paragraph with words before and behind."""
    return paragraph(f"{run('@ ')}{inner}{run(' @')}")


def in_run(inner: str) -> str:
    return in_line(f"<w:r>{inner}</w:r>")


def table(rows: str) -> str:
    return f"<w:tbl><w:tblPr/><w:tblGrid><w:gridCol/><w:gridCol/></w:tblGrid>{rows}</w:tbl>"


def cell(inner: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inner}</w:tc>"


AT = 'w:id="1" w:author="a" w:date="2026-01-01T00:00:00Z"'
TEXT_BOX = f"<w:txbxContent>{paragraph(run('@'))}{paragraph(run('@'))}</w:txbxContent>"
SHAPE = (
    '<w:drawing><wp:anchor><a:graphic><a:graphicData uri="x">{0}</a:graphicData></a:graphic></wp:anchor></w:drawing>'
)
CHART_HERE, WIDE = '<c:chart r:id="chart"/>', '<w:gridSpan w:val="2"/>'
BEFORE = [
    ("plain", paragraph(run("@"))),
    ("title", paragraph(run("@"), '<w:pStyle w:val="Title"/>')),
    ("author", paragraph(run("@"), '<w:pStyle w:val="Author"/>')),
    ("date", paragraph(run("@"), '<w:pStyle w:val="Date"/>')),
]
ELEMENTS = [
    ("heading", paragraph(run("@"), '<w:pStyle w:val="Heading1"/>')),
    ("w:b", in_line(run("@", "<w:b/>"))),
    ("w:smallCaps", in_line(run("@", "<w:smallCaps/>"))),
    ("w:strike", in_line(run("@", "<w:strike/>"))),
    ("w:vertAlign", in_line(run("@", '<w:vertAlign w:val="superscript"/>'))),
    ("w:rtl", in_line(run("@", "<w:rtl/>"))),
    ("two runs of a word", paragraph(run("@") + run("", "<w:b/>"))),
    ("w:hyperlink", in_line(f'<w:hyperlink r:id="link">{run("@")}</w:hyperlink>')),
    ("w:hyperlink to an anchor", in_line(f'<w:hyperlink w:anchor="x">{run("@")}</w:hyperlink>')),
    ("w:fldSimple", in_line(f'<w:fldSimple w:instr=" REF ~ ">{run("@")}</w:fldSimple>')),
    (
        "w:fldSimple in another",
        in_line(
            f'<w:fldSimple w:instr="IF">{run("@ ")}<w:fldSimple w:instr="X">{run("@")}</w:fldSimple></w:fldSimple>'
        ),
    ),
    (
        "w:fldChar",
        in_line(
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> REF ~ </w:instrText></w:r>'
            f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{run("@")}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
        ),
    ),
    (
        "a field in the instruction of another",
        in_line(
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> IF </w:instrText></w:r>'
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> MERGEFIELD n </w:instrText></w:r>'
            f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{run("~")}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
            f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{run("@")}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
        ),
    ),
    (
        "w:ddList",
        in_line(
            '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="~"/>'
            '<w:listEntry w:val="@"/></w:ddList></w:ffData></w:fldChar></w:r><w:r><w:instrText>FORMDROPDOWN</w:instrText></w:r>'
            '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
        ),
    ),
    ("w:customXml in a line", in_line(f'<w:customXml w:element="x">{run("@")}</w:customXml>')),
    ("w:customXml", f'<w:customXml w:element="x"><w:customXmlPr/>{paragraph(run("@"))}</w:customXml>'),
    ("w:smartTag", in_line(f'<w:smartTag w:element="x">{run("@")}</w:smartTag>')),
    ("w:dir", in_line(f'<w:dir w:val="rtl">{run("@")}</w:dir>')),
    ("w:bdo", in_line(f'<w:bdo w:val="rtl">{run("@")}</w:bdo>')),
    ("w:sdt in a line", in_line(f"<w:sdt><w:sdtPr/><w:sdtContent>{run('@')}</w:sdtContent></w:sdt>")),
    ("w:sdt", f"<w:sdt><w:sdtPr/><w:sdtContent>{paragraph(run('@'))}</w:sdtContent></w:sdt>"),
    ("w:ins", in_line(f"<w:ins {AT}>{run('@')}</w:ins>")),
    ("w:moveTo", in_line(f"<w:moveTo {AT}>{run('@')}</w:moveTo>")),
    ("w:del", in_line(f"<w:del {AT}><w:r><w:delText>~</w:delText></w:r></w:del>")),
    ("w:moveFrom", in_line(f"<w:moveFrom {AT}>{run('~')}</w:moveFrom>")),
    (
        "w:del in w:ins",
        in_line(f"<w:ins {AT}><w:del {AT}><w:r><w:delText>~</w:delText></w:r></w:del>{run('@')}</w:ins>"),
    ),
    ("w:vanish", in_line(run("~", "<w:vanish/>"))),
    ("w:vanish that is off", in_line(run("@", '<w:vanish w:val="0"/>'))),
    ("a style that hides", in_line(run("~", '<w:rStyle w:val="Hidden"/>'))),
    ("a style on it", in_line(run("~", '<w:rStyle w:val="AlsoHidden"/>'))),
    ("a paragraph's style that hides", paragraph(run("~"), '<w:pStyle w:val="HiddenLine"/>')),
    ("w:tab", in_run("<w:t>@</w:t><w:tab/><w:t>@</w:t>")),
    ("w:ptab", in_run('<w:t>@</w:t><w:ptab w:alignment="right"/><w:t>@</w:t>')),
    ("w:br", in_run("<w:t>@</w:t><w:br/><w:t>@</w:t>")),
    ("w:br of a page", in_run('<w:t>@</w:t><w:br w:type="page"/><w:t>@</w:t>')),
    ("w:cr", in_run("<w:t>@</w:t><w:cr/><w:t>@</w:t>")),
    ("w:noBreakHyphen", in_run("<w:t>@</w:t><w:noBreakHyphen/><w:t>@</w:t>")),
    ("w:sym", in_run('<w:t>@</w:t><w:sym w:font="Symbol" w:char="F0B0"/><w:t>@</w:t>')),
    (
        "w:ruby",
        in_run(f"<w:ruby><w:rubyPr/><w:rubyBase>{run('@')}</w:rubyBase><w:rt>{run('@')}</w:rt></w:ruby>"),
    ),
    ("m:oMath", in_line("<m:oMath><m:r><m:t>@</m:t></m:r></m:oMath>")),
    ("w:footnoteReference", in_run("<w:t>@</w:t>") + paragraph(run("@"))),
    ("w:proofErr", in_line(f'<w:proofErr w:type="spellStart"/>{run("@")}<w:proofErr w:type="spellEnd"/>')),
    ("w:bookmarkStart", in_line(f'<w:bookmarkStart w:id="2" w:name="b"/>{run("@")}<w:bookmarkEnd w:id="2"/>')),
    ("w:commentRangeStart", in_line(f'<w:commentRangeStart w:id="3"/>{run("@")}<w:commentRangeEnd w:id="3"/>')),
    ("w:permStart", in_line(f'<w:permStart w:id="4"/>{run("@")}<w:permEnd w:id="4"/>')),
    (
        "wps:txbx",
        paragraph(f"{run('@')}<w:r>{SHAPE.format(f'<wps:wsp><wps:txbx>{TEXT_BOX}</wps:txbx></wps:wsp>')}</w:r>"),
    ),
    (
        "v:textbox",
        paragraph(f"{run('@')}<w:r><w:pict><v:shape><v:textbox>{TEXT_BOX}</v:textbox></v:shape></w:pict></w:r>"),
    ),
    (
        "a text box in both ways",
        paragraph(
            f"{run('@')}<w:r><mc:AlternateContent><mc:Choice>"
            f"{SHAPE.format(f'<wps:wsp><wps:txbx>{TEXT_BOX}</wps:txbx></wps:wsp>')}</mc:Choice><mc:Fallback><w:pict><v:shape><v:textbox>"
            f"{TEXT_BOX.replace('@', '~')}</v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
        ),
    ),
    ("v:textpath", paragraph(f'{run("@")}<w:r><w:pict><v:shape><v:textpath string="@"/></v:shape></w:pict></w:r>')),
    ("c:chart", paragraph(f"{run('@')}<w:r>{SHAPE.format(CHART_HERE)}</w:r>")),
    ("w:tbl", table(f"<w:tr>{cell(paragraph(run('@')))}{cell(paragraph(run('@')))}</w:tr>")),
    ("a row in w:sdt", table(f"<w:sdt><w:sdtContent><w:tr>{cell(paragraph(run('@')))}</w:tr></w:sdtContent></w:sdt>")),
    ("a cell in w:sdt", table(f"<w:tr><w:sdt><w:sdtContent>{cell(paragraph(run('@')))}</w:sdtContent></w:sdt></w:tr>")),
    ("a row in w:customXml", table(f"<w:customXml><w:tr>{cell(paragraph(run('@')))}</w:tr></w:customXml>")),
    ("cells with two lines", table(f"<w:tr>{cell(paragraph(run('@')) + paragraph(run('@')))}</w:tr>")),
    (
        "a deleted row",
        table(
            f"<w:tr>{cell(paragraph(run('@')))}</w:tr><w:tr><w:trPr><w:del {AT}/></w:trPr>{cell(paragraph(run('~')))}</w:tr>"
            f"<w:tr><w:trPr><w:ins {AT}/></w:trPr>{cell(paragraph(run('@')))}</w:tr>"
        ),
    ),
    (
        "w:gridSpan",
        table(
            f"<w:tr>{cell(paragraph(run('@')), WIDE)}</w:tr><w:tr>{cell(paragraph(run('@')))}{cell(paragraph(run('@')))}</w:tr>"
        ),
    ),
    ("w:caption", paragraph(run("@"), '<w:pStyle w:val="Caption"/>')),
    ("w:numPr", paragraph(run("@"), '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>')),
    ("w:framePr", paragraph(run("@"), '<w:framePr w:w="99"/>') + paragraph(run("@"))),
    ("w:sectPr", paragraph(run("@"), "<w:sectPr/>")),
]
STYLES = """
<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Title"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="Author"><w:name w:val="Author"/></w:style>
<w:style w:type="paragraph" w:styleId="Date"><w:name w:val="Date"/></w:style>
<w:style w:type="character" w:styleId="Hidden"><w:name w:val="Hidden"/><w:rPr><w:vanish/></w:rPr></w:style>
<w:style w:type="character" w:styleId="AlsoHidden"><w:name w:val="AlsoHidden"/><w:basedOn w:val="Hidden"/></w:style>
<w:style w:type="paragraph" w:styleId="HiddenLine"><w:name w:val="HiddenLine"/><w:rPr><w:vanish/></w:rPr></w:style>
"""
CHART = (
    "<c:title><c:tx><c:rich><a:p><a:r><a:t>Harvest</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser>"
    "<c:tx><c:strRef><c:f>Sheet1!$A$1</c:f><c:strCache><c:pt><c:v>Barley</c:v></c:pt></c:strCache></c:strRef></c:tx>"
    "<c:cat><c:strRef><c:strCache><c:pt><c:v>North</c:v></c:pt><c:pt><c:v>South</c:v></c:pt></c:strCache></c:strRef></c:cat>"
    "<c:val><c:numRef><c:numCache><c:pt><c:v>77.5</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:barChart></c:plotArea>"
)


def test_the_words_of_each_element_come_out_once_in_order_and_apart(tmp_path):
    made = filled([*BEFORE[1:], BEFORE[0], *ELEMENTS])
    found = read(word_file(tmp_path / "a.docx", made.text, STYLES, chart=CHART))
    assert faults(made, f"{found.title}\n{found.text}") == {}
    assert not found.lost
    assert "Harvest\nBarley\nNorth | South" in found.text and "77.5" not in found.text and "Sheet1" not in found.text
