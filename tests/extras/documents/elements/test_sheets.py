"""Workbooks: the cells, numbers and dates that a reader sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extras.documents.elements.office_files import DECLARED, OFFICE, packed, relations
from tests.extras.documents.test_by_pandoc import read

pytest.importorskip("selectolax")
SHEETS = f'xmlns="{OFFICE}/spreadsheetml/2006/main" {DECLARED}'
STYLES = """<numFmts><numFmt numFmtId="164" formatCode='yyyy\\-mm\\-dd;@'/><numFmt numFmtId="165" formatCode='0.0"cm"'/></numFmts>
<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="10"/><xf numFmtId="164"/><xf numFmtId="3"/><xf numFmtId="22"/><xf numFmtId="20"/>
<xf numFmtId="165"/></cellXfs>"""


def workbook(path: Path, *sheets: str, states: tuple[str, ...] = (), strings: str = "", properties: str = "") -> Path:
    named = "".join(
        f'<sheet name="Sheet {number}" state="{state}" r:id="s{number}"/>'
        for number, state in enumerate(states or ["visible"] * len(sheets))
    )
    return packed(
        path,
        {
            "_rels/.rels": relations(a=("officeDocument", "/xl/workbook.xml")),
            "xl/workbook.xml": f"<workbook {SHEETS}><workbookPr {properties}/><sheets>{named}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations(
                styles=("styles", "styles.xml"),
                strings=("sharedStrings", "/xl/sharedStrings.xml"),
                **{f"s{number}": ("worksheet", f"/xl/worksheets/s{number}.xml") for number in range(len(sheets))},
            ),
            "xl/styles.xml": f"<styleSheet {SHEETS}>{STYLES}</styleSheet>",
            "xl/sharedStrings.xml": f"<sst {SHEETS}>{strings}</sst>",
            **{
                f"xl/worksheets/s{number}.xml": f"<worksheet {SHEETS}>{sheet}</worksheet>"
                for number, sheet in enumerate(sheets)
            },
        },
    )


def row(*cells: str, properties: str = "") -> str:
    return f"<row {properties}>{''.join(cells)}</row>"


def number(value: object, style: int = 0, place: str = "") -> str:
    return f'<c s="{style}" {f"r={chr(34)}{place}{chr(34)}" if place else ""}><v>{value}</v></c>'


def text(value: str) -> str:
    return f'<c t="inlineStr"><is><t>{value}</t></is></c>'


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("0", "5 | -5 | 0 | words"),
        (";;;", ""),
        ("0;-0;;@", "5 | -5 | words"),
        ("0;;0", "5 | 0 | words"),
        ("0;-0;0;", "5 | -5 | 0"),
        ('0;-0;"a;b";@', "5 | -5 | 0 | words"),
    ],
)
def test_what_a_format_hides_is_not_shown(tmp_path, monkeypatch, code, shown):
    monkeypatch.setitem(globals(), "STYLES", STYLES.replace('0.0"cm"', code.replace('"', "&quot;")))
    cells = row(text("a"), number(5, 7), number(-5, 7), number(0, 7), text("words").replace("<c ", '<c s="7" '))
    found = read(workbook(tmp_path / "a.xlsx", f"<sheetData>{cells}</sheetData>")).text
    assert found == " | ".join(filter(None, ["a", shown]))


@pytest.mark.parametrize(
    ("value", "style", "shown"),
    [
        (45375, 1, "2024-03-24"),
        (45375, 3, "2024-03-24"),
        (0.475, 2, "47.50%"),
        (1234567, 4, "1,234,567"),
        (45375.75, 5, "2024-03-24 18:00"),
        (0.75, 6, "18:00"),
        (2.25, 7, "2.2"),
        ("0.30000000000000004", 0, "0.3"),
        (12, 0, "12"),
        ("1.5E-3", 0, "0.0015"),
    ],
)
def test_a_number_is_shown_by_its_format(tmp_path, value, style, shown):
    cells = row(text("Value"), number(value, style))
    assert read(workbook(tmp_path / "a.xlsx", f"<sheetData>{cells}</sheetData>")).text == f"Value | {shown}"


def test_a_sheet_is_a_heading_and_rows_and_what_is_hidden_stays_out(tmp_path):
    strings = "<si><t>Pump</t><rPh><t>ponpu</t></rPh></si><si><r><t>big </t></r><r><t>valve</t></r></si>"
    shown = (
        '<cols><col min="2" max="2" hidden="1"/></cols><sheetData>'
        + row('<c r="A1" t="s"><v>0</v></c>', number(7, place="B1"), '<c r="D1" t="s"><v>1</v></c>')
        + row(text("secret"), properties='hidden="1"')
        + row('<c t="b"><v>1</v></c>', properties="")
        + '<row><c t="str"><f>A1</f><v>made</v></c></row></sheetData>'
    )
    secret = f"<sheetData>{row(text('secret'))}</sheetData>"
    found = read(workbook(tmp_path / "a.xlsx", secret, shown, states=("hidden", "visible"), strings=strings))
    assert (found.title, found.text) == ("Sheet 1", "Pump | | big valve\nTRUE\nmade")
    assert not found.lost


def test_dates_count_from_1904_where_the_workbook_says_so(tmp_path):
    sheet = f"<sheetData>{row(text('Day'), number(43913, 1))}</sheetData>"
    assert read(workbook(tmp_path / "a.xlsx", sheet, properties='date1904="1"')).text == "Day | 2024-03-24"
