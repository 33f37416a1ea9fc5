"""Office files of the least parts that make them one."""

from __future__ import annotations

import zipfile
from pathlib import Path

OFFICE = "http://schemas.openxmlformats.org"
RELATIONS = f"{OFFICE}/officeDocument/2006/relationships"
NAMESPACES = {
    "w": f"{OFFICE}/wordprocessingml/2006/main",
    "a": f"{OFFICE}/drawingml/2006/main",
    "p": f"{OFFICE}/presentationml/2006/main",
    "c": f"{OFFICE}/drawingml/2006/chart",
    "dgm": f"{OFFICE}/drawingml/2006/diagram",
    "m": f"{OFFICE}/officeDocument/2006/math",
    "r": RELATIONS,
    "wp": f"{OFFICE}/drawingml/2006/wordprocessingDrawing",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "mc": f"{OFFICE}/markup-compatibility/2006",
    "v": "urn:schemas-microsoft-com:vml",
    "a14": "http://schemas.microsoft.com/office/drawing/2010/main",
}
DECLARED = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
OPEN = "urn:oasis:names:tc:opendocument:xmlns"
DECLARED_OPEN = " ".join(
    [
        *(
            f'xmlns:{name}="{OPEN}:{name}:1.0"'
            for name in ("text", "table", "office", "style", "form", "presentation", "chart")
        ),
        f'xmlns:draw="{OPEN}:drawing:1.0"',
        f'xmlns:svg="{OPEN}:svg-compatible:1.0"',
        'xmlns:xlink="http://www.w3.org/1999/xlink"',
        'xmlns:dc="http://purl.org/dc/elements/1.1/"',
    ]
)


def packed(path: Path, parts: dict[str, str]) -> Path:
    """Write an archive of these parts."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def relations(**targets: tuple[str, str]) -> str:
    """A part of relations, from ids to the last word of the type, and the target."""
    each = "".join(
        f'<Relationship Id="{name}" Type="{RELATIONS}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{OFFICE}/package/2006/relationships">{each}</Relationships>'


def word_file(path: Path, body: str, styles: str = "", footnotes: str = "", chart: str = "", diagram: str = "") -> Path:
    """A Word document of these elements."""
    return packed(
        path,
        {
            "_rels/.rels": relations(a=("officeDocument", "word/document.xml")),
            "word/_rels/document.xml.rels": relations(
                styles=("styles", "styles.xml"),
                footnotes=("footnotes", "footnotes.xml"),
                chart=("chart", "charts/chart1.xml"),
                diagram=("diagramData", "diagrams/data1.xml"),
                link=("hyperlink", "more.html"),
            ),
            "word/document.xml": f"<w:document {DECLARED}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": f"<w:styles {DECLARED}>{styles}</w:styles>",
            "word/footnotes.xml": f"<w:footnotes {DECLARED}>{footnotes}</w:footnotes>",
            "word/charts/chart1.xml": f"<c:chartSpace {DECLARED}><c:chart>{chart}</c:chart></c:chartSpace>",
            "word/diagrams/data1.xml": f"<dgm:dataModel {DECLARED}>{diagram}</dgm:dataModel>",
        },
    )


def slides_file(
    path: Path, slides: list[str], notes: str = "", chart: str = "", diagram: str = "", size: str = ""
) -> Path:
    """Slides of these shapes. The first one has the notes. A slide that begins with `hidden` is hidden."""
    parts = {
        "_rels/.rels": relations(a=("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f"<p:presentation {DECLARED}><p:sldIdLst>"
        + "".join(f'<p:sldId id="{256 + number}" r:id="s{number}"/>' for number in range(len(slides)))
        + f"</p:sldIdLst>{size}</p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            **{f"s{number}": ("slide", f"slides/slide{number}.xml") for number in range(len(slides))}
        ),
        "ppt/notesSlides/notes.xml": f"<p:notes {DECLARED}><p:cSld><p:spTree>{notes}</p:spTree></p:cSld></p:notes>",
        "ppt/charts/chart1.xml": f"<c:chartSpace {DECLARED}><c:chart>{chart}</c:chart></c:chartSpace>",
        "ppt/diagrams/data1.xml": f"<dgm:dataModel {DECLARED}>{diagram}</dgm:dataModel>",
    }
    for number, shapes in enumerate(slides):
        show = ' show="0"' if shapes.startswith("hidden") else ""
        shapes = shapes.removeprefix("hidden")
        parts[f"ppt/slides/slide{number}.xml"] = (
            f"<p:sld {DECLARED}{show}><p:cSld><p:spTree><p:nvGrpSpPr/>{shapes}</p:spTree></p:cSld></p:sld>"
        )
        parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(
            chart=("chart", "../charts/chart1.xml"),
            diagram=("diagramData", "/ppt/diagrams/data1.xml"),
            **({} if number else {"notes": ("notesSlide", "../notesSlides/notes.xml")}),
        )
    return packed(path, parts)


def open_file(path: Path, body: str, styles: str = "", kind: str = "text", chart: str = "") -> Path:
    """An OpenDocument of these elements, a text or a `presentation`."""
    return packed(
        path,
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document-content {DECLARED_OPEN}><office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
            "styles.xml": f"<office:document-styles {DECLARED_OPEN}><office:styles/></office:document-styles>",
            "Object 1/content.xml": f"<office:document-content {DECLARED_OPEN}><office:body><office:chart>{chart}</office:chart>"
            "</office:body></office:document-content>",
        },
    )
