"""What is no prose of a page that MediaWiki or Parsoid has rendered: that which a dump's reader leaves out of the wikitext, too."""

from __future__ import annotations

from typing import Any

from realmctl.corpus.wiki.wikitext import SECTIONS_WITHOUT_PROSE

UNREAD = ", ".join(
    [
        "table",
        "figure",
        "style",
        "math",
        "ol.references",
        *(
            f".{name}"
            for name in (
                "mwe-math-element",
                "thumb",
                "gallery",
                "references",
                "reflist",
                "mw-references-wrap",
                "navbox",
            )
        ),
        *(
            f".{name}"
            for name in (
                "infobox",
                "sidebar",
                "toc",
                "catlinks",
                "hatnote",
                "dablink",
                "rellink",
                "noprint",
                "metadata",
            )
        ),
        *(
            f".{name}"
            for name in (
                "navigation-not-searchable",
                "mw-editsection",
                "shortdescription",
                "side-box",
                "portalbox",
                "error",
            )
        ),
        *(
            f".{name}"
            for name in (
                "mw-highlight",
                "mw-kartographer-container",
                "mw-ext-score",
                "geo-nondefault",
                "mw-cite-backlink",
            )
        ),
        "a.autonumber",
        "#toc",
        "#coordinates",
        "sup.reference",
        "[typeof~='mw:Extension/references']",
        "[typeof~='mw:Extension/ref']",
    ]
)
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def reduce(page: Any) -> None:
    """Take tables, boxes, references, formulas, galleries, headings and sections without prose out of a parsed page."""
    for node in page.css(UNREAD):
        node.decompose()
    skipping = 0
    for node in page.css(", ".join((*HEADINGS, "p", "ul", "ol", "dl", "blockquote", "pre"))):
        if node.tag in HEADINGS:
            level = int(node.tag[1])
            if not skipping or level <= skipping:
                skipping = level if " ".join(node.text().split()).lower() in SECTIONS_WITHOUT_PROSE else 0
            node.decompose()
        elif skipping:
            node.decompose()
