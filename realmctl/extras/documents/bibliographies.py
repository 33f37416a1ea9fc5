"""Read bibliographies: an entry is a document. pandoc reads BibTeX, EndNote's XML and CSL's JSON; of RIS it loses every date with a month."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Dropped, Found
from realmctl.corpus.fields import kept
from realmctl.extras.documents import by_pandoc, charsets
from realmctl.inputs import streams

READ = {
    "bibtex": "BibTeX",
    "biblatex": "BibLaTeX",
    "ris": "RIS",
    "endnotexml": "EndNote's XML",
    "csljson": "CSL's JSON",
}
ENDINGS = {".bib": "biblatex", ".bibtex": "bibtex", ".ris": "ris", ".csljson": "csljson"}
TAG = re.compile(r"</?[a-z][^<>]*>")
PEOPLE = ("author", "editor", "translator", "director")
AROUND = ("container-title", "collection-title", "event-title", "publisher", "publisher-place", "genre")
BELOW = ("abstract", "note", "annote", "keyword")


def read_bibliography(file: CorpusFile, name: str) -> Iterator[Found]:
    """Yield each entry, titled by its title. Its text is who wrote it and when, where it appeared, and its abstract, note and keywords.

    Raises as `by_pandoc.read_by_pandoc`.
    """
    data = streams.whole_bytes(file.path, by_pandoc.MAX_OFFICE_BYTES)
    source = charsets.source_text(file.path, data, by_pandoc.MAX_OFFICE_BYTES)
    if name == "ris":
        entries = [*_ris(source)]
    else:
        entries = json.loads(by_pandoc.written_by_pandoc(file, name, READ[name], source.encode(), "csljson"))
    seen = Counter[str]()
    for entry in entries:
        key = str(entry.get("id") or "")
        seen[key] += 1
        identity = f"{file.name}-{key}" + (f"-{seen[key]}" if seen[key] > 1 else "")
        people = [", ".join(map(_name, entry[role])) for role in PEOPLE if isinstance(entry.get(role), list)]
        date = _date(entry.get("issued"))
        by = "; ".join(filter(None, people))
        lines = [
            f"{by} ({date})" if by and date else by or date,
            ", ".join(text for text in (_text(entry.get(each)) for each in AROUND) if text),
            *(_text(entry.get(each)) for each in BELOW),
        ]
        title, text = _text(entry.get("title")), "\n".join(filter(None, lines))
        if not title and not text:
            yield Dropped(identity, "empty")
            continue
        fields = {
            "author": people[0] if people else "",
            "date": date,
            "type": entry.get("type"),
            "doi": entry.get("DOI"),
            "url": entry.get("URL"),
        }
        where = f"{file.path}, entry {key!r}"
        yield Document(identity, title, text, has_lines=True, fields=kept(fields), where=where)


RIS_LINE = re.compile(r"([A-Z][A-Z0-9])  -(?: (.*)|$)")
RIS_DATE = re.compile(r"(\d{4})(?:/(\d{1,2}))?(?:/(\d{1,2}))?(?:/.*)?")
RIS = {
    "id": ("ID",),
    "title": ("TI", "T1", "CT", "BT"),
    "container-title": ("JO", "JF", "T2", "JA"),
    "collection-title": ("T3",),
    "publisher": ("PB",),
    "publisher-place": ("CY", "PP"),
    "abstract": ("AB", "N2"),
    "note": ("N1",),
    "keyword": ("KW",),
    "DOI": ("DO",),
    "URL": ("UR", "L1"),
    "type": ("TY",),
}
"""Names of CSL, and the tags of RIS that say it, the surest first."""


def _ris(text: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of RIS under the names of CSL."""
    tags, last = dict[str, list[str]](), ""
    for line in [*text.splitlines(), "ER  -"]:
        found = RIS_LINE.fullmatch(line.rstrip())
        if not found:
            if last and line.strip():
                tags[last][-1] += f" {line.strip()}"
        elif found[1] == "ER":
            if tags:
                yield _of_ris(tags)
            tags, last = {}, ""
        elif value := (found[2] or "").strip():
            last = found[1]
            tags.setdefault(last, []).append(value)


def _of_ris(tags: dict[str, list[str]]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        name: ", ".join(next((tags[tag] for tag in known if tag in tags), [])) for name, known in RIS.items()
    }
    for role, known in (("author", ("AU", "A1")), ("editor", ("ED", "A2", "A3"))):
        people = [each.partition(",") for tag in known for each in tags.get(tag, ())]
        entry[role] = [{"family": family.strip(), "given": given.strip()} for family, _, given in people]
    dates = [RIS_DATE.match(each) for tag in ("DA", "PY", "Y1") for each in tags.get(tag, ())]
    best = max(filter(None, dates), key=lambda found: found.lastindex or 0, default=None)
    entry["issued"] = {"date-parts": [[int(part) for part in best.groups() if part]]} if best else {}
    return entry


def _text(value: Any) -> str:
    """A text of CSL without its marks."""
    return " ".join(html.unescape(TAG.sub("", value)).split()) if isinstance(value, str) else ""


def _name(person: Any) -> str:
    """A person as family and given name, or an institution."""
    if not isinstance(person, dict):
        return ""
    family = " ".join(_text(person.get(part)) for part in ("non-dropping-particle", "family")).strip()
    given = " ".join(_text(person.get(part)) for part in ("given", "dropping-particle")).strip()
    return _text(person.get("literal")) or " ".join(filter(None, (given, family, _text(person.get("suffix")))))


def _date(issued: Any) -> str:
    """A date of CSL as ISO 8601 writes it, or as it is written."""
    if not isinstance(issued, dict):
        return ""
    parts = (issued.get("date-parts") or [[]])[0]
    if all(isinstance(part, int) for part in parts):
        return "-".join(f"{part:02d}" for part in parts)
    return _text(issued.get("raw") or issued.get("literal"))
