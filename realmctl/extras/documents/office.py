"""Read office documents and books. What their archives hold is compared with what came out, so that no text is lost in silence."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Found
from realmctl.errors import require_package
from realmctl.extras.documents import apart, by_pandoc
from realmctl.extras.documents.containers.archive import words
from realmctl.extras.documents.pages import document_of
from realmctl.inputs import streams

READ: dict[str, str] = {
    "docx": "Word document",
    "pptx": "PowerPoint slides",
    "odt": "OpenDocument text",
    "odp": "OpenDocument slides",
    "xlsx": "Excel workbook",
    "ods": "OpenDocument spreadsheet",
    "epub": "EPUB book",
}
PARSER = apart.ManyParses("realmctl.extras.documents.containers.program")


def read_office(file: CorpusFile, name: str) -> Iterator[Found]:
    """Yield a file of this format as one document, titled by its metadata, or by its first heading, or by its file.

    Raises:
        InputError: The file is damaged or too large.
        ResourceError: The extra `documents` is not installed.
    """
    called = READ[name]
    require_package("selectolax", "documents", f"{file.path} is read as {called}, which")
    reply, why = PARSER.parse({"kind": name}, streams.whole_bytes(file.path, by_pandoc.MAX_OFFICE_BYTES))
    if reply is None or "why" in reply:
        raise by_pandoc.unreadable(file, called, why if reply is None else reply["why"])
    if "html" in reply:
        html = reply["html"]
    else:
        pandocs = "odt" if name == "odp" else name
        html = by_pandoc.html_by_pandoc(file, pandocs, called, b64decode(reply["archive"]))
    found = document_of(file, "content", html)
    yield replace(found, lost=_lost(reply["words"], found)) if isinstance(found, Document) else found


def _lost(held: dict[str, int], found: Document) -> str:
    """How many of the words that a file holds are not in its document, with the first ones; empty if none is missing."""
    missing = Counter(held) - words([found.title, found.text])
    if not missing:
        return ""
    lost, total = missing.total(), sum(held.values())
    return f"{lost:,} of its {total:,} words ({lost / total:.1%}), such as {', '.join(map(repr, list(missing)[:3]))}"
