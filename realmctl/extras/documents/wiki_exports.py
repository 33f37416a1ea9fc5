"""Read what Wikimedia offers beside its dumps: the pages of CirrusSearch, as of any bulk file of Elasticsearch, and those of Wikimedia Enterprise."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Dropped, Found
from realmctl.corpus.fields import kept
from realmctl.corpus.formats.records import FieldNames, document_of
from realmctl.corpus.formats.wikipedia import of_wikitext
from realmctl.corpus.wiki import dump
from realmctl.errors import InputError
from realmctl.extras.documents import pages
from realmctl.inputs.rows import json_lines

ACTION = re.compile(rb'\{\s*"(?:index|create)"\s*:\s*\{[^{}]*\}\s*\}\s*\n\s*\{')
ARTICLE = re.compile(rb'\{.*?"article_body"\s*:\s*\{')
ACTIONS = ("index", "create")
MARKED = re.compile(r"<(?:meta|link)[^<>]*mw:PageProp/disambiguation", re.IGNORECASE)


def is_bulk(file: CorpusFile, start: bytes) -> bool:
    return ACTION.match(start) is not None


def read_bulk(file: CorpusFile) -> Iterator[Found]:
    """Yield the documents of a bulk file: a line says the id, and the next one is the document. Other namespaces than that of articles are dropped."""
    names, identity = FieldNames.of(file.settings), ""
    for row in json_lines(file.path):
        action = next((row.fields[each] for each in ACTIONS if isinstance(row.fields.get(each), dict)), None)
        if action is not None and len(row.fields) == 1:
            identity = str(action.get("_id", ""))
            continue
        fields = row.fields if not identity or {*row.fields} & {*names.ids} else {"id": identity, **row.fields}
        if fields.get("namespace", 0) not in (0, None):
            yield Dropped(identity or f"{file.name}-{row.number}", "namespace")
        else:
            yield document_of(row._replace(fields=fields), f"{file.name}-{row.number}", names)
        identity = ""


def is_enterprise(file: CorpusFile, start: bytes) -> bool:
    first = start.partition(b"\n")[0]
    return start[:1] == b"{" and b'"identifier"' in first and ARTICLE.match(first) is not None


def read_enterprise(file: CorpusFile) -> Iterator[Found]:
    """Yield the articles of Wikimedia Enterprise's snapshots: the prose of the HTML, which is what a reader sees, or that of the
    wikitext where there is no HTML.
    """
    for row in json_lines(file.path):
        fields = row.fields
        body = fields.get("article_body")
        if not isinstance(body, dict) or not isinstance(fields.get("name"), str):
            raise InputError(
                f"{row.where}: not an article of Wikimedia Enterprise, which has name and article_body. Correct or remove it."
            )
        identity, title = str(fields.get("identifier") or f"{file.name}-{row.number}"), fields["name"]
        number, language = _named(fields, "namespace"), _named(fields, "in_language")
        wikitext, html = (each if isinstance(each := body.get(name), str) else "" for name in ("wikitext", "html"))
        page = dump.Page(identity, title, number if isinstance(number, int) else 0, text=wikitext or html)
        reason = dump.skip_page(page) or dump.skip_title(title, file.settings.keep_lists)
        if reason or (html and MARKED.search(html)):
            yield Dropped(identity, reason or "disambiguation")
            continue
        told = kept({"url": fields.get("url"), "date": fields.get("date_modified")})
        if html:
            found = pages.document_of(replace(file, name=identity), "wiki", html, title, fields=told)
            yield found if isinstance(found, Dropped) else replace(found, where=row.where)
        else:
            clean = _clean(language if isinstance(language, str) else "", file.settings.language)
            yield Document(identity, title, wikitext, clean=clean, fields=told, where=row.where)


@lru_cache(64)
def _clean(language: str, wanted: str) -> Callable[[Document], Document]:
    return of_wikitext({}, language, wanted)


def _named(fields: Mapping[str, Any], name: str) -> Any:
    held = fields.get(name)
    return held.get("identifier") if isinstance(held, dict) else held
