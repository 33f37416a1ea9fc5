"""Read corpus files of each format as a stream of raw documents.

Sources: MediaWiki dumps (mediawiki.org/wiki/Help:Export), WikiExtractor's --json, JSON lines with the field names of
BEIR, FlashRAG and Pyserini, DPR's psgs_w100.tsv, SQuAD's JSON, plain text. `detect_format` detects the format of
a file. A raw document keeps its markup; `documents.document` turns it into prose.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from realmctl.corpus.wiki import dump
from realmctl.corpus.wiki.dump_parts import DumpPart
from realmctl.corpus.wiki.names import MEDIA
from realmctl.corpus.wiki.wikitext import AnchorOffsets
from realmctl.errors import InputError
from realmctl.inputs import streams
from realmctl.inputs.delimited import unquoted
from realmctl.inputs.json_lines import json_object

Markup = Literal["plain", "wikitext", "wikiextractor"]
MAX_JSON_FILE = 2**28
MAX_TEXT_FILE = 2**26
IDS = ("id", "_id", "docid", "doc_id", "pid", "wikipedia_id")
TITLES = ("title", "wikipedia_title")
TEXTS = ("text", "contents", "body", "content", "passage")
MAX_TITLE_LINE = 300


@dataclass(frozen=True, slots=True)
class FieldNames:
    """Fields or columns that a user named as those of id, title and text. Empty: any of IDS, TITLES and TEXTS."""

    id: str = ""
    title: str = ""
    text: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.id,) if self.id else IDS

    @property
    def titles(self) -> tuple[str, ...]:
        return (self.title,) if self.title else TITLES

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.text else TEXTS

    @property
    def named(self) -> tuple[str, ...]:
        """The names that the user gave."""
        return tuple(name for name in (self.id, self.title, self.text) if name)

    def lower(self) -> FieldNames:
        return FieldNames(self.id.lower(), self.title.lower(), self.text.lower())

    def require_in(self, names: Collection[str], where: str) -> None:
        """Raise InputError unless all names that the user gave are among these."""
        if missing := [name for name in self.named if name not in names]:
            raise InputError(
                f"{where}: no field or column is named {' or '.join(missing)}. There are: {', '.join(names) or 'none'}. "
                "Correct --id-field, --title-field or --text-field."
            )


KNOWN_NAMES = FieldNames()


@dataclass(frozen=True, slots=True)
class RawDocument:
    """A document as it is in its file.

    `where` is its position in the file, for messages. `media` are the namespaces that `wikitext.prose` drops. `fault`
    says why the text was not read, and is empty otherwise. `anchors` are links that the file holds apart from the text,
    with character offsets in it.
    """

    id: str
    title: str
    text: str
    where: str
    markup: Markup = "plain"
    media: frozenset[str] = MEDIA
    fault: str = ""
    anchors: tuple[AnchorOffsets, ...] = ()


@dataclass
class PageCounts:
    """How many pages were read, and how many were dropped by reason. All others were passed on."""

    pages: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


def read_dump(path: Path, counts: PageCounts, keep_lists: bool, part: DumpPart = dump.WHOLE) -> Iterator[RawDocument]:
    """Yield the articles of a MediaWiki dump, or of a part of it. Redirects, other namespaces, disambiguation pages and lists are dropped."""
    namespaces: dict[str, int] = {}
    media = MEDIA
    for page in dump.pages(path, namespaces, part):
        counts.pages += 1
        if reason := dump.skip_page(page, keep_lists):
            counts.dropped[reason] += 1
            continue
        media = media if len(media) > len(MEDIA) else dump.media_names(namespaces)
        fault = f"its text is above {dump.MAX_PAGE_BYTES // 2**20} MiB" if page.oversized else ""
        yield RawDocument(page.id, page.title, page.text, f"{path}, page {page.title!r}", "wikitext", media, fault)


def read_wikiextractor(path: Path, counts: PageCounts, keep_lists: bool) -> Iterator[RawDocument]:
    """Yield the documents of WikiExtractor's `--json` output: entities are escaped, and `--links` gives <a href>."""
    for raw in read_json_lines(path, counts, keep_lists):
        yield RawDocument(raw.id, raw.title, raw.text, raw.where, "wikiextractor")


def read_json_lines(
    path: Path, counts: PageCounts, keep_lists: bool, names: FieldNames = KNOWN_NAMES
) -> Iterator[RawDocument]:
    """Yield the documents of JSON lines: one object a line."""
    for number, line in streams.lines(path):
        if line.strip():
            where = f"{path}:{number}"
            record = json_object(line, where)
            names.require_in(record, where)
            substitute = f"{path.name.partition('.')[0]}-{number}"
            yield from kept(from_record(record, substitute, where, names), counts, keep_lists)


def from_record(record: Mapping[str, Any], substitute: str, where: str, names: FieldNames = KNOWN_NAMES) -> RawDocument:
    identity, title = _pick(record, names.ids), _pick(record, names.titles)
    text = _pick(record, names.texts)
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        text = "\n".join(part.strip() for part in text)
    if (
        not isinstance(text, str)
        or not isinstance(title, str | None)
        or isinstance(identity, bool | float | list | dict)
    ):
        raise InputError(
            f"{where}: this is not a document. It needs a text ({', '.join(names.texts)}) and may have a title and an id. It "
            f"has {', '.join(record) or 'nothing'}. If the text has another name, say --text-field NAME."
        )
    if title is None and "contents" in record and not names.named:
        first, newline, rest = text.partition("\n")
        title, text = (first.strip().strip('"'), rest) if newline and len(first) <= MAX_TITLE_LINE else ("", text)
    return RawDocument(
        encodable(str(identity) if identity is not None else substitute, where),
        encodable(title or "", where),
        encodable(text, where),
        where,
    )


def _pick(record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def encodable(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: half a surrogate pair at character {error.start}, which cannot be written as UTF-8. Correct or remove the line."
        ) from None
    return text


def link_target(href: str) -> str:
    """Return the title of the page that a link names: `Tiber_%28river%29#Source` is Tiber (river)."""
    title = unquote(href).partition("#")[0].replace("_", " ").strip()
    return title[:1].upper() + title[1:]


def kept(raw: RawDocument, counts: PageCounts, keep_lists: bool) -> Iterator[RawDocument]:
    """Count a document, and yield it unless it is empty or its title says that it is not an article."""
    counts.pages += 1
    reason = dump.skip_title(raw.title, keep_lists) or ("" if raw.text.strip() else "empty")
    if reason:
        counts.dropped[reason] += 1
    else:
        yield raw


def read_dpr(path: Path, counts: PageCounts, keep_lists: bool) -> Iterator[RawDocument]:
    """Yield the passages of DPR's psgs_w100.tsv: a header, then id, text and title with csv quotes."""
    for number, line in streams.lines(path):
        if number == 1 or not line.strip():
            continue
        fields = [unquoted(value) for value in line.split("\t")]
        if len(fields) != 3:
            raise InputError(
                f"{path}:{number}: {len(fields)} columns, but id, text and title are expected. Correct or "
                f"remove the line."
            )
        yield from kept(RawDocument(fields[0], fields[2], fields[1], f"{path}:{number}"), counts, keep_lists)


def read_squad(path: Path, counts: PageCounts, keep_lists: bool) -> Iterator[RawDocument]:
    """Yield the articles of a SQuAD-layout file. The paragraphs of an article are one document."""
    try:
        articles = json.loads(streams.whole_text(path, MAX_JSON_FILE))["data"]
        for number, article in enumerate(articles):
            title = article["title"]
            text = "\n".join(paragraph["context"].strip() for paragraph in article["paragraphs"])
            where = f"{path}, article {number}"
            yield from kept(
                RawDocument(encodable(title, where), title.replace("_", " "), encodable(text, where), where),
                counts,
                keep_lists,
            )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path}: not in SQuAD's layout, data[].paragraphs[].context ({type(error).__name__}: {error}). "
            f"Correct the file."
        ) from None


def read_plain(path: Path, counts: PageCounts, keep_lists: bool) -> Iterator[RawDocument]:
    """Yield a text file as one document, titled by its file name."""
    title = path.name.partition(".")[0]
    yield from kept(
        RawDocument(title, title.replace("_", " "), streams.whole_text(path, MAX_TEXT_FILE), str(path)),
        counts,
        keep_lists,
    )
