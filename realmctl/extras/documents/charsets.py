"""The text of a page of HTML, of XML or of another source in the charset that it declares."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from realmctl.corpus.formats.tagged import MAX_TEXT_FILE
from realmctl.inputs import streams

DECLARED = re.compile(rb"<meta\s[^<>]*?\bcharset\s*=\s*[\"']?\s*([\w:.-]{2,40})", re.IGNORECASE)
DECLARED_WITHIN = 1024
LIKE_BROWSERS = {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "shift_jis": "cp932", "gb2312": "gb18030", "ks_c_5601-1987": "cp949"}  # fmt: skip
"""What browsers take these names for."""

XML_DECLARED = re.compile(
    rb"(?P<kept>\A(?:\xef\xbb\xbf)?\s*<\?xml\b[^<>]*?\bencoding\s*=\s*[\"'])(?P<name>[\w.:-]{2,40})"
)
SOURCE_DECLARED = re.compile(
    rb"\\usepackage\s*\[(?P<latex>[\w-]{2,20})\]\s*\{inputenc\}|^=encoding[ \t]+(?P<pod>[\w.:-]{2,40})|\bcoding[:=][ \t]*(?P<emacs>[\w.-]{2,40})",
    re.MULTILINE,
)
"""What LaTeX, POD and editors call the charset of a source."""
NAMES = {"latin9": "iso8859-15", "ansinew": "cp1252", "applemac": "mac_roman", "koi8-ru": "koi8-u"}


def source_text(path: Path, data: bytes, limit: int) -> str:
    """A source in UTF-8 if it is that, else in the charset that it declares. Raises InputError as `streams.whole_text`."""
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        found = XML_DECLARED.match(data)
        declared = found or SOURCE_DECLARED.search(data[: 8 * DECLARED_WITHIN])
        name = (
            next(filter(None, declared.groupdict().values() if not found else [found["name"]]), b"").decode()
            if declared
            else ""
        )
        text = _as_declared(data, NAMES.get(name.lower(), name.lower()) or "utf-8")
        if text is not None:
            return text
    return streams.whole_text(path, limit)


def html_text(path: Path) -> str:
    """A page in UTF-8 if it is that, else in the charset that it declares. Raises InputError as `streams.whole_text`."""
    data = streams.whole_bytes(path, MAX_TEXT_FILE)
    found = None if b"\0" in data else _as_declared(data, "")
    return streams.whole_text(path, MAX_TEXT_FILE) if found is None else found


def decoded(data: bytes, charset: str) -> str:
    """A page in UTF-8 if it is that, else in this charset, or in the one that it declares, or in Windows-1252."""
    found = _as_declared(data, charset or "utf-8")
    return data.decode("cp1252", errors="replace") if found is None else found


def _as_declared(data: bytes, told: str) -> str | None:
    declared = DECLARED.search(data[:DECLARED_WITHIN])
    names = [name.lower() for name in (told, declared[1].decode() if declared else "") if name]
    for charset in ("utf-8-sig", *(LIKE_BROWSERS.get(name, name) for name in names)) if names else ():
        with suppress(LookupError, ValueError):
            return data.decode(charset)
    return None
