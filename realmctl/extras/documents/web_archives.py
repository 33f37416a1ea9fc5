"""Read archives of web pages (WARC, ISO 28500; also Common Crawl's WET): a page that was answered is a document."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Dropped, Found, SkippedPage
from realmctl.corpus.fields import Fields, kept
from realmctl.corpus.wrapped import unwrapped
from realmctl.errors import InputError, require_package
from realmctl.extras.documents import pages
from realmctl.extras.documents.charsets import decoded
from realmctl.inputs import streams

MAX_RECORD_BYTES = 2**24
MAX_HEADER_BYTES = 2**16
VERSION = re.compile(rb"WARC/\d")
PAGES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
NEXT = re.compile(rb"\nWARC/\d")
STATUS = re.compile(rb"HTTP/\S+\s+(\d{3})")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[^\r\n]*\r?\n")
HEADER_END = re.compile(rb"\r?\n\r?\n")


def is_web_archive(file: CorpusFile, start: bytes) -> bool:
    return VERSION.match(start) is not None


def read_web_archive(file: CorpusFile) -> Iterator[Found]:
    """Yield the pages of HTML and plain text that were answered with status 200, and the texts of WET. Their fields are address and date.

    Raises InputError where the file is damaged.
    """
    require_package("selectolax", "documents", f"{file.path} is an archive of web pages, and reading it")
    for number, (header, body) in enumerate(_records(file), 1):
        kind = header.get("warc-type", "")
        if kind not in ("response", "resource", "conversion"):
            continue
        identity, where = f"{file.name}-{number}", f"{file.path}, record {number}"
        if body is None:
            yield SkippedPage(identity, "", f"it has more than {MAX_RECORD_BYTES // 2**20} MiB", where)
            continue
        told: Mapping[str, str] = {"content-type": header.get("content-type", "")}
        if kind == "response":
            status = STATUS.match(body)
            if not status or status[1] != b"200":
                yield Dropped(identity, "no_answer")
                continue
            told, body = _answer(body)
            try:
                body = _plain_body(told, body)
            except (ValueError, zlib.error) as error:
                yield SkippedPage(identity, "", f"its body cannot be read ({error})", where)
                continue
        content, _, parameters = told.get("content-type", "").partition(";")
        content = content.strip().lower()
        if content not in PAGES:
            yield Dropped(identity, "no_page")
            continue
        address = header.get("warc-target-uri", "").strip("<>")
        fields = kept({"url": address, "date": header.get("warc-date", "")})
        yield _page(file, identity, where, content, decoded(body, _charset(parameters)), address, fields)


def _page(file: CorpusFile, identity: str, where: str, content: str, text: str, address: str, fields: Fields) -> Found:
    if content == "text/plain":
        text = unwrapped(text.replace("\r\n", "\n")).strip()
        return (
            Document(identity, address, text, has_lines=True, fields=fields, where=where)
            if text
            else Dropped(identity, "empty")
        )
    found = pages.document_of(replace(file, name=identity), "html", text, fields=fields)
    return found if isinstance(found, Dropped) else replace(found, where=where)


def _records(file: CorpusFile) -> Iterator[tuple[dict[str, str], bytes | None]]:
    """Yield the header of each record, with names in lower case, and its body; None for one that is too long."""
    pieces, held, is_first = streams.decompressed(file.path), bytearray(), True

    def more() -> bool:
        piece = next(pieces, None)
        held.extend(piece or b"")
        return piece is not None

    while True:
        while not held.lstrip(b"\r\n") and more():
            pass
        del held[: len(held) - len(held.lstrip(b"\r\n"))]
        if not held:
            return
        while not is_first and not VERSION.match(held):  # some writers count their lengths wrongly
            if found := NEXT.search(held):
                del held[: found.start() + 1]
            else:
                del held[: -len(b"\nWARC/1")]
                if not more():
                    return
        is_first = False
        while (end := HEADER_END.search(held, 0, MAX_HEADER_BYTES)) is None and len(held) < MAX_HEADER_BYTES and more():
            pass
        if end is None or not VERSION.match(held):
            raise InputError(f"{file.path}: a record does not begin as one of WARC does. Get the file again.")
        header = _fields(bytes(held[: end.start()]))
        length = header.get("content-length", "")
        if not length.isdecimal():
            raise InputError(f"{file.path}: a record does not say how long it is. Get the file again.")
        del held[: end.end()]
        left, is_long = int(length), int(length) > MAX_RECORD_BYTES
        while is_long and len(held) < left:
            left -= len(held)
            held.clear()
            if not more():
                break
        while len(held) < left and more():
            pass
        if len(held) < left:
            raise InputError(f"{file.path}: its last record is cut. Get the file again.")
        yield header, None if is_long else bytes(held[:left])
        del held[:left]


def _fields(header: bytes) -> dict[str, str]:
    found = dict[str, str]()
    for line in header.decode("utf-8", errors="replace").splitlines()[1:]:
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip().lower(), value.strip())
    return found


def _charset(parameters: str) -> str:
    found = re.search(r"charset\s*=\s*[\"']?([\w:.-]{2,40})", parameters, re.IGNORECASE)
    return found[1] if found else ""


def _answer(body: bytes) -> tuple[dict[str, str], bytes]:
    """The header of an answer, and its body."""
    end = HEADER_END.search(body)
    return (_fields(body[: end.start()]), body[end.end() :]) if end else ({}, b"")


def _plain_body(told: Mapping[str, str], body: bytes) -> bytes:
    """The body of an answer without the coding of its transport and its content. Raises ValueError or zlib.error."""
    if "chunked" in told.get("transfer-encoding", "").lower() and CHUNK.match(body):
        whole, place = list[bytes](), 0
        while (chunk := CHUNK.match(body, place)) and (size := int(chunk[1], 16)):
            whole.append(body[chunk.end() : chunk.end() + size])
            place = chunk.end() + size
            place += 2 if body[place : place + 2] == b"\r\n" else 1
        body = b"".join(whole)
    coding = told.get("content-encoding", "").strip().lower()
    if coding in ("", "identity") or (coding in ("gzip", "x-gzip") and body[:2] != b"\x1f\x8b"):
        return body  # archives often keep the name of a coding that they have undone
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"it is coded by {coding[:40]!r}")
    window = 47 if coding != "deflate" or body[:1] == b"\x78" else -15
    found = zlib.decompressobj(window).decompress(body, MAX_RECORD_BYTES + 1)
    if len(found) > MAX_RECORD_BYTES:
        raise ValueError(f"it has more than {MAX_RECORD_BYTES // 2**20} MiB")
    return found
