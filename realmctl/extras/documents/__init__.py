"""Documents with markup or a layout as text: HTML, Markdown, PDF, mail, and what pandoc reads."""

OFFERS = {
    "realmctl.formats": {
        "pdf": "realmctl.extras.documents.formats:FORMATS",
        "ipynb": "realmctl.extras.documents.formats:FORMATS",
        "docbook": "realmctl.extras.documents.formats:FORMATS",
        "rst": "realmctl.extras.documents.formats:FORMATS",
        "asciidoc": "realmctl.extras.documents.formats:FORMATS",
        "org": "realmctl.extras.documents.formats:FORMATS",
        "latex": "realmctl.extras.documents.formats:FORMATS",
        "typst": "realmctl.extras.documents.formats:FORMATS",
        "pod": "realmctl.extras.documents.formats:FORMATS",
        "mediawiki": "realmctl.extras.documents.formats:FORMATS",
        "textile": "realmctl.extras.documents.formats:FORMATS",
        "fb2": "realmctl.extras.documents.formats:FORMATS",
        "markdown": "realmctl.extras.documents.formats:FORMATS",
        "docx": "realmctl.extras.documents.formats:FORMATS",
        "epub": "realmctl.extras.documents.formats:FORMATS",
        "odt": "realmctl.extras.documents.formats:FORMATS",
        "pptx": "realmctl.extras.documents.formats:FORMATS",
        "rtf": "realmctl.extras.documents.formats:FORMATS",
        "jats": "realmctl.extras.documents.formats:FORMATS",
        "man": "realmctl.extras.documents.formats:FORMATS",
        "mdoc": "realmctl.extras.documents.formats:FORMATS",
        "mail": "realmctl.extras.documents.formats:FORMATS",
        "html": "realmctl.extras.documents.formats:FORMATS",
    },
}
