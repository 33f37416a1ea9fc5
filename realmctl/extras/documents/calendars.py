"""Read calendars (iCalendar, RFC 5545): an event, a task or a journal entry is a document."""

from __future__ import annotations

import re
from collections.abc import Iterator

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Dropped, Found
from realmctl.corpus.fields import kept
from realmctl.corpus.formats.tagged import MAX_TEXT_FILE
from realmctl.inputs import streams

KINDS = frozenset({"VEVENT", "VTODO", "VJOURNAL"})
PROPERTY = re.compile(
    r'([A-Za-z0-9-]+)((?:;[A-Za-z0-9-]+=(?:"[^"]*"|[^";:]*)(?:,(?:"[^"]*"|[^";:]*))*)*):(.*)', re.DOTALL
)
MOMENT = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})\d{2}(Z?))?")
ESCAPED = re.compile(r"\\([\\;,nN])")
SHOWN = ("LOCATION", "DESCRIPTION", "COMMENT")


def is_calendar(file: CorpusFile, start: bytes) -> bool:
    return start[:15].upper() == b"BEGIN:VCALENDAR"


def read_calendar(file: CorpusFile) -> Iterator[Found]:
    """Yield each entry, titled by its summary. Its text begins with its time, as the calendar writes it, and its place."""
    text = streams.whole_text(file.path, MAX_TEXT_FILE)
    entry: dict[str, list[str]] | None = None
    inner, number = 0, 0
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
        found = PROPERTY.fullmatch(line)
        if not found:
            continue
        name, value = found[1].upper(), found[3]
        if name == "BEGIN":
            if entry is None and value.upper() in KINDS:
                entry, number = {}, number + 1
            else:
                inner += entry is not None
        elif name == "END" and entry is not None:
            if inner:
                inner -= 1
            else:
                yield _document(file, number, entry)
                entry = None
        elif entry is not None and not inner:
            entry.setdefault(name, []).append(value)
    if not number:
        yield Dropped(file.name, "empty")


def _document(file: CorpusFile, number: int, entry: dict[str, list[str]]) -> Found:
    def text(name: str) -> str:
        plain = (ESCAPED.sub(lambda sign: "\n" if sign[1] in "nN" else sign[1], each) for each in entry.get(name, ()))
        return "\n".join(line.strip() for each in plain for line in each.splitlines() if line.strip())

    begin, end = (_moment(text(name)) for name in ("DTSTART", "DTEND"))
    lines = [" \u2013 ".join(filter(None, (begin, end if end != begin else "")))]
    if due := _moment(text("DUE")):
        lines.append(f"\u2013 {due}")
    lines += map(text, SHOWN)
    identity, where = f"{file.name}-{number}", f"{file.path}, entry {number}"
    title = " ".join(text("SUMMARY").split())
    if not title and not any(map(text, SHOWN)):
        return Dropped(identity, "empty")
    fields = {"date": (begin or due).replace(" ", "T"), "location": text("LOCATION"), "categories": text("CATEGORIES")}
    return Document(identity, title, "\n".join(filter(None, lines)), has_lines=True, fields=kept(fields), where=where)


def _moment(value: str) -> str:
    """A date or a time as ISO 8601 writes it; empty for what is none."""
    found = MOMENT.match(value)
    if not found:
        return ""
    year, month, day, hour, minute, zone = found.groups()
    return f"{year}-{month}-{day}" + (f" {hour}:{minute}{zone}" if hour else "")
