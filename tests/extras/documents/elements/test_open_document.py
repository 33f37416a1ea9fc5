"""Each element of an OpenDocument with words of its own: they come out once, in order and apart, and what no reader sees stays out."""

from __future__ import annotations

import pytest

from realmctl.extras.documents import by_pandoc
from tests.extras.documents.elements.office_files import open_file
from tests.extras.documents.elements.snippets import faults, filled
from tests.extras.documents.test_by_pandoc import read

pytest.importorskip("selectolax")
pytestmark = pytest.mark.skipif(by_pandoc._pandoc() is None, reason="needs pandoc")

FIELDS = [
    "text:author-initials text:author-name text:chapter text:creation-date text:date text:time text:title text:subject text:description "
    "text:file-name text:page-number text:page-count text:word-count text:placeholder text:conditional-text text:variable-get "
    "text:variable-set text:variable-input text:user-field-get text:user-field-input text:user-defined text:expression text:text-input "
    "text:sequence text:sequence-ref text:bookmark-ref text:reference-ref text:note-ref text:database-display text:drop-down "
    "text:sheet-name text:meta text:meta-field text:bibliography-mark text:sender-city text:initial-creator text:keywords "
    "text:execute-macro text:measure text:template-name text:a text:span text:dde-connection"
]
SHAPES = [
    "draw:custom-shape",
    "draw:rect",
    "draw:ellipse",
    "draw:circle",
    "draw:line",
    "draw:connector",
    "draw:polygon",
    "draw:path",
    "draw:caption",
    "draw:measure",
]


def paragraph(inner: str, style: str = "Standard") -> str:
    return f'<text:p text:style-name="{style}">{inner}</text:p>'


def cell(inner: str) -> str:
    return f"<table:table-cell>{inner}</table:table-cell>"


def table(rows: str) -> str:
    return f'<table:table><table:table-column table:number-columns-repeated="2"/>{rows}</table:table>'


LINE = paragraph("@")
ROW = f"<table:table-row>{cell(LINE)}{cell(LINE)}</table:table-row>"
ELEMENTS = [
    ("text:p", LINE),
    ("text:h", '<text:h text:outline-level="2">@</text:h>'),
    *((name, paragraph(f"@ <{name}>@</{name}> @")) for names in FIELDS for name in names.split()),
    *((name, paragraph(f"@<{name}>{LINE}{LINE}</{name}> @").replace(" @", "")) for name in SHAPES),
    ("text:s", paragraph("@<text:s/>@")),
    ("text:tab", paragraph("@<text:tab/>@")),
    ("text:line-break", paragraph("@<text:line-break/>@")),
    (
        "text:ruby",
        paragraph("@ <text:ruby><text:ruby-base>@</text:ruby-base><text:ruby-text>@</text:ruby-text></text:ruby> @"),
    ),
    ("text:bookmark", paragraph('@ <text:bookmark text:name="~"/>@')),
    ("text:bookmark-start", paragraph('@ <text:bookmark-start text:name="~"/>@<text:bookmark-end text:name="~"/> @')),
    (
        "text:reference-mark-start",
        paragraph('@ <text:reference-mark-start text:name="~"/>@<text:reference-mark-end text:name="~"/> @'),
    ),
    ("text:change", paragraph('@ <text:change text:change-id="~"/>@')),
    (
        "text:change-start",
        paragraph('@ <text:change-start text:change-id="c"/>@<text:change-end text:change-id="c"/> @'),
    ),
    (
        "text:tracked-changes",
        f"<text:tracked-changes><text:changed-region><text:deletion>{paragraph('~')}</text:deletion></text:changed-region></text:tracked-changes>",
    ),
    (
        "office:annotation",
        paragraph("@ <office:annotation><dc:creator>~</dc:creator><text:p>~</text:p></office:annotation>@"),
    ),
    ("text:hidden-text", paragraph('@ <text:hidden-text text:is-hidden="true">~</text:hidden-text> @')),
    ("text:hidden-paragraph", paragraph('<text:hidden-paragraph text:is-hidden="true"/>~')),
    ("a style that hides", paragraph('@ <text:span text:style-name="Hidden">~</text:span> @')),
    ("a style on it", paragraph('@ <text:span text:style-name="AlsoHidden">~</text:span> @')),
    ("a paragraph's style that hides", paragraph("~", "Hidden")),
    ("text:section", f'<text:section text:name="s">{LINE}{LINE}</text:section>'),
    ("a hidden text:section", f'<text:section text:name="s" text:display="none">{paragraph("~")}</text:section>'),
    ("text:script", paragraph("@ <text:script>~</text:script> @")),
    ("text:numbered-paragraph", f'<text:numbered-paragraph text:level="1">{LINE}</text:numbered-paragraph>'),
    (
        "text:list",
        f"<text:list><text:list-item>{LINE}</text:list-item><text:list-item>{LINE}<text:list><text:list-item>{LINE}</text:list-item></text:list></text:list-item></text:list>",
    ),
    (
        "text:list-header",
        f"<text:list><text:list-header>{LINE}</text:list-header><text:list-item>{LINE}</text:list-item></text:list>",
    ),
    (
        "text:alphabetical-index",
        f"<text:alphabetical-index><text:alphabetical-index-source/><text:index-body><text:index-title>{LINE}</text:index-title>{LINE}</text:index-body></text:alphabetical-index>",
    ),
    (
        "text:bibliography",
        f"<text:bibliography><text:bibliography-source><text:index-title-template>~</text:index-title-template></text:bibliography-source><text:index-body>{LINE}</text:index-body></text:bibliography>",
    ),
    (
        "text:table-of-content",
        f"<text:table-of-content><text:index-body>{paragraph('~')}</text:index-body></text:table-of-content>",
    ),
    ("draw:text-box", paragraph(f"@<draw:frame><draw:text-box>{LINE}{LINE}</draw:text-box></draw:frame>")),
    ("draw:frame at a page", f"<draw:frame><draw:text-box>{LINE}</draw:text-box></draw:frame>"),
    ("a table in draw:text-box", paragraph(f"@<draw:frame><draw:text-box>{table(ROW)}</draw:text-box></draw:frame>")),
    (
        "draw:g",
        paragraph(
            f"@<draw:g><draw:rect>{LINE}</draw:rect><draw:g><draw:frame><draw:text-box>{LINE}</draw:text-box></draw:frame></draw:g></draw:g>"
        ),
    ),
    ("draw:image", paragraph('@ <draw:frame draw:name="~"><draw:image xlink:href="x.png"/></draw:frame>@')),
    ("draw:object", paragraph('@<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>')),
    (
        "draw:a",
        paragraph(f'@<draw:a xlink:href="x"><draw:frame><draw:text-box>{LINE}</draw:text-box></draw:frame></draw:a>'),
    ),
    ("draw:control", paragraph('@ <draw:control draw:control="town"/> @')),
    ("table:table", table(f"<table:table-header-rows>{ROW}</table:table-header-rows>{ROW}")),
    ("table:table-rows", table(f"<table:table-rows>{ROW}</table:table-rows>")),
    ("table:table-row-group", table(f"<table:table-row-group>{ROW}</table:table-row-group>")),
    (
        "a hidden row",
        table(f'{ROW}<table:table-row table:visibility="collapse">{cell(paragraph("~"))}</table:table-row>'),
    ),
    (
        "table:covered-table-cell",
        table(
            f'<table:table-row><table:table-cell table:number-columns-spanned="2">{LINE}</table:table-cell><table:covered-table-cell>{paragraph("~")}</table:covered-table-cell></table:table-row>'
        ),
    ),
    ("a longer row", table(f"<table:table-row>{cell(LINE)}</table:table-row>{ROW}")),
    (
        "text:note",
        paragraph(
            '@ <text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>Below.</text:p></text:note-body></text:note>@'
        ),
    ),
]
STYLES = """
<style:style style:name="Hidden" style:family="text"><style:text-properties text:display="none"/></style:style>
<style:style style:name="AlsoHidden" style:family="text" style:parent-style-name="Hidden"/>
"""
FORM = (
    '<office:forms><form:form><form:listbox form:id="town"><form:option form:label="Bath"/>'
    '<form:option form:label="Wells" form:current-selected="true"/></form:listbox></form:form></office:forms>'
)
CHART = (
    "<chart:chart><chart:title><text:p>Harvest</text:p></chart:title><table:table><table:table-row>"
    '<table:table-cell office:value-type="string"><text:p>Barley</text:p></table:table-cell>'
    '<table:table-cell office:value-type="float"><text:p>77.5</text:p></table:table-cell></table:table-row></table:table></chart:chart>'
)


def test_the_words_of_each_element_come_out_once_in_order_and_apart(tmp_path):
    made = filled(ELEMENTS)
    found = read(open_file(tmp_path / "a.odt", FORM + made.text, STYLES, chart=CHART))
    assert faults(made, found.text) == {}
    assert not found.lost
    assert "Harvest\nBarley\n" in found.text and "77.5" not in found.text
    assert "Wells" in found.text and "Bath" not in found.text
    assert found.text.count("Below.") == 1


def test_slides_become_headings_lines_and_notes(tmp_path):
    page = (
        '<draw:page><draw:frame><draw:text-box><text:list text:style-name="L"><text:list-item><text:p>Dig</text:p></text:list-item></text:list></draw:text-box></draw:frame>'
        '<draw:frame presentation:class="title"><draw:text-box><text:p>The garden</text:p></draw:text-box></draw:frame>'
        "<draw:g><draw:custom-shape><text:p>In a group</text:p></draw:custom-shape></draw:g>"
        '<draw:frame presentation:class="footer"><draw:text-box><text:p>Foot</text:p></draw:text-box></draw:frame>'
        '<presentation:notes><draw:frame presentation:class="notes"><draw:text-box><text:p>Bring tea.</text:p></draw:text-box></draw:frame></presentation:notes>'
        "</draw:page>"
    )
    secret = '<draw:page draw:style-name="Off"><draw:rect><text:p>Secret</text:p></draw:rect></draw:page>'
    styles = '<text:list-style style:name="L"><text:list-level-style-bullet text:level="1" text:bullet-char="-"/></text:list-style><style:style style:name="Off"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    found = read(open_file(tmp_path / "a.odp", page + secret, styles, "presentation"))
    assert (found.title, found.text.split("\n")) == ("The garden", ["- Dig", "In a group", "Notes: Bring tea."])
    assert not found.lost
