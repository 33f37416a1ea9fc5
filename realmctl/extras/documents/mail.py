"""Read mail: a message (RFC 5322), as `.eml` files and Maildir have it, or a mailbox of many (mbox, RFC 4155).

A message is a document. Python's `email` parses it; its size is bounded before, so that no message takes all memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from email.utils import parsedate_to_datetime
from pathlib import Path

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import PAGE_SECONDS, Document, Dropped, Found, SkippedPage
from realmctl.corpus.fields import kept
from realmctl.corpus.formats.tagged import MAX_TEXT_FILE
from realmctl.corpus.wrapped import unwrapped
from realmctl.errors import require_package
from realmctl.execution.deadline import DeadlineError, deadline
from realmctl.extras.documents.pages import document_of
from realmctl.inputs import streams

MAX_MESSAGE_BYTES = MAX_TEXT_FILE
MAX_MESSAGE_LINES = 2**20
MAX_MESSAGE_PARTS = 2**14
MAX_MAIL_HEADER = 1000
"""Longest header that is read, in characters; the rest is cut."""
BEGIN = re.compile(rb"From \S.*\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.*\d{4}\s*$")
"""The line before each message of a mailbox: an address and a date. A line of a text that begins so has `>` before it."""
QUOTED_BEGIN = re.compile(rb"^>(>*From )", re.MULTILINE)
HEADER = re.compile(rb"([A-Za-z][A-Za-z0-9-]*):(?:[ \t]|\r?$)")
"""The name of a header."""
KNOWN = frozenset({b"from", b"date", b"subject", b"message-id", b"received", b"return-path", b"mime-version", b"to"})
LEAST_KNOWN = 3
DIVIDED_FROM = 60
"""Characters of a line from which on it may end within a word."""
ENDINGS = frozenset({".eml", ".mbox"})
CHARSETS = "utf-8", "cp1252"
"""What a text is decoded by whose charset is not named, or not known, or wrong."""


def is_mail(start: bytes) -> bool:
    """Whether a file that begins so is a mailbox, or a message: it has headers up to an empty line, among them three of every mail."""
    first, _, rest = start.partition(b"\n")
    if BEGIN.match(first):
        return HEADER.match(rest) is not None
    lines = [
        line for line in re.split(rb"\r?\n\r?\n", start, maxsplit=1)[0].split(b"\n") if line[:1] not in (b" ", b"\t")
    ]
    names = [HEADER.match(line) for line in lines]
    return all(names) and len(KNOWN & {name[1].lower() for name in names if name}) >= LEAST_KNOWN


def read_mail(file: CorpusFile) -> Iterator[Found]:
    """Yield each message as a document, titled by its subject. Its text begins with sender and date. Attachments are left out.

    The text is the plain one, or that of the HTML where there is no other (extra `documents`).
    """
    for where, name, data in _messages(file):
        if data is None or data.count(b"\n--") > MAX_MESSAGE_PARTS or data.count(b"\n") > MAX_MESSAGE_LINES:
            yield SkippedPage(
                name, "", f"it has more than {MAX_MESSAGE_BYTES // 2**20} MiB, or too many lines or parts", where
            )
            continue
        try:
            with deadline(PAGE_SECONDS):
                found = _document(file, name, where, BytesParser(policy=compat32).parsebytes(data))
        except DeadlineError:
            found = SkippedPage(name, "", f"not read within {PAGE_SECONDS:g} s", where)
        except RecursionError:
            found = SkippedPage(name, "", "its parts are nested too deeply", where)
        yield found


def _messages(file: CorpusFile) -> Iterator[tuple[str, str, bytes | None]]:
    """Yield (place, id, bytes) of each message; None for the bytes of one that is too long."""
    held, size, number, begun, after_empty = list[bytes](), 0, 0, 0, True
    is_box = False
    for place, line in enumerate(_lines(file.path), 1):
        if after_empty and (is_box or place == 1) and BEGIN.match(line):
            if is_box and begun < place:
                yield f"{file.path}:{begun}", f"{file.name}-{number}", _bytes_of_boxed(held, size)
            held, size, number, begun, is_box = [], 0, number + 1, place, True
            continue
        size += len(line)
        if size <= MAX_MESSAGE_BYTES:
            held.append(line)
        after_empty = not line.strip()
    if is_box:
        yield f"{file.path}:{begun}", f"{file.name}-{number}", _bytes_of_boxed(held, size)
    else:
        yield str(file.path), file.name, b"".join(held) if size <= MAX_MESSAGE_BYTES else None


def _bytes_of_boxed(lines: list[bytes], size: int) -> bytes | None:
    return QUOTED_BEGIN.sub(rb"\1", b"".join(lines)) if size <= MAX_MESSAGE_BYTES else None


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their ends. A line of more than MAX_MESSAGE_BYTES is divided."""
    held, size = list[bytes](), 0
    for piece in streams.decompressed(path):
        for part in piece.splitlines(keepends=True):
            held.append(part)
            size += len(part)
            if part.endswith(b"\n") or size > MAX_MESSAGE_BYTES:
                yield b"".join(held)
                held, size = [], 0
    if held:
        yield b"".join(held)


def _is_text(part: Message) -> bool:
    return part.get_content_type() in ("text/plain", "text/html") and part.get_content_disposition() != "attachment"


def _document(file: CorpusFile, name: str, where: str, message: Message) -> Found:
    title = _header(message, "Subject") or file.stem.replace("_", " ")
    told = ", ".join(filter(None, (_header(message, "From"), _header(message, "Date"))))
    parts = [part for part in message.walk() if _is_text(part)]
    plain = [part for part in parts if part.get_content_type() == "text/plain"]
    text = unwrapped("\n\n".join(map(_text, plain)).strip())
    if not text and parts:
        require_package("selectolax", "documents", f"{where} is a message in HTML, and reading it")
        found = document_of(file, "html", "\n".join(map(_text, parts)), title)
        if isinstance(found, SkippedPage):
            return SkippedPage(name, title, found.reason, where)
        if isinstance(found, Document):
            text = found.text
    if not text:
        return Dropped(name, "empty")
    fields = {"from": _header(message, "From"), "to": _header(message, "To"), "date": _date(message)}
    return Document(
        name, title, f"{told}\n\n{text}" if told else text, has_lines=True, fields=kept(fields), where=where
    )


def _date(message: Message) -> str:
    """The date of a message as ISO 8601 writes it, at the place of its sender; empty where it has none."""
    with suppress(ValueError, OverflowError):
        return parsedate_to_datetime(_header(message, "Date")).isoformat()
    return ""


def _header(message: Message, name: str) -> str:
    """A header as text; empty where there is none."""
    raw = str(message.get(name, ""))[:MAX_MAIL_HEADER]
    try:
        text = str(make_header(decode_header(raw)))
    except (HeaderParseError, LookupError, ValueError):
        text = raw
    return " ".join(text.encode(errors="replace").decode().split())


def _text(part: Message) -> str:
    """The text of a part, by its charset. Lines that flow (RFC 3676) are one."""
    text = _decoded(part)
    if str(part.get_param("format", "")).lower() == "flowed":
        return _flowed(text, str(part.get_param("delsp", "")).lower() == "yes")
    return text


def _flowed(text: str, without_blanks: bool) -> str:
    """A text whose lines that end in a blank go on in the next one, if both are quoted as deep. without_blanks: This blank is none of the text; a
    line that is shorter than a divided word needs has words before and behind it all the same.
    """
    made, depth, goes_on = list[str](), 0, False
    for line in text.split("\n"):
        plain = line.lstrip(">")
        level = len(line) - len(plain)
        plain = plain.removeprefix(" ")
        is_signature = plain == "-- "
        if goes_on and level == depth and not is_signature:
            made[-1] += plain
        else:
            made.append(f"{'>' * level} {plain}" if level else plain)
        depth, goes_on = level, plain.endswith(" ") and not is_signature
        if goes_on and without_blanks and (plain.endswith("  ") or len(line) >= DIVIDED_FROM):
            made[-1] = made[-1][:-1]
    return "\n".join(made)


def _decoded(part: Message) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    for charset in (str(part.get_content_charset() or CHARSETS[0]), *CHARSETS):
        try:
            return data.decode(charset).replace("\r\n", "\n")
        except (LookupError, ValueError):
            continue
    return data.decode(CHARSETS[0], errors="replace").replace("\r\n", "\n")
