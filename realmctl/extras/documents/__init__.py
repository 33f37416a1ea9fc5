"""Documents with markup or a layout as text: HTML, Markdown, PDF, mail, and what pandoc reads."""

FORMATS = [
    "pdf",
    "ipynb",
    "docbook",
    "rst",
    "asciidoc",
    "org",
    "latex",
    "typst",
    "pod",
    "mediawiki",
    "textile",
    "fb2",
    "markdown",
    "docx",
    "epub",
    "odt",
    "pptx",
    "rtf",
    "jats",
    "man",
    "mdoc",
    "mail",
    "html",
]
"""In the order in which a file is compared with them."""
OFFERS: dict[str, dict[str, str]] = {
    "realmctl.formats": dict.fromkeys(FORMATS, "realmctl.extras.documents.formats:FORMATS")
}
