"""The program that reads many office documents and books, one after the other, in a process of its own (`apart.ManyParses`)."""

from __future__ import annotations

import base64
import zipfile
import zlib
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import ParseError

from realmctl.extras.documents.containers import books, open_document, open_sheets, sheets, slides, word
from realmctl.extras.documents.containers.archive import Archive
from realmctl.extras.documents.many_parses import answer

READERS: dict[str, Callable[[Archive], tuple[bytes | str, Any]]] = {
    "docx": word.rewritten,
    "odt": open_document.rewritten,
    "odp": open_document.rewritten,
    "pptx": slides.html_of,
    "epub": books.html_of,
    "xlsx": sheets.html_of,
    "ods": open_sheets.html_of,
}


def read(asked: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Return what is read of an archive: `html`, or the archive for pandoc in base64 (`archive`), and how often each word stands in it (`words`); or why
    it cannot be read (`why`).

    asked: `kind`, a key of READERS.
    """
    try:
        made, counted = READERS[asked["kind"]](Archive(data))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, KeyError, ParseError) as error:
        return {"why": f"it is damaged, or none ({error})"}
    except RecursionError:
        return {"why": "its elements are nested too deeply"}
    except (ValueError, RuntimeError) as error:
        return {"why": str(error)}
    if isinstance(made, str):
        return {"html": made, "words": counted}
    return {"archive": base64.b64encode(made).decode(), "words": counted}


if __name__ == "__main__":
    answer(read)
