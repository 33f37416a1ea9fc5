"""Corpora as tagged text: WikiExtractor's output without `--json`, and TREC's document files.

WikiExtractor (github.com/attardi/wikiextractor) writes `<doc id="7" url="..." title="Rome">`, the title, a blank line,
the text and `</doc>`. TREC (trec.nist.gov) writes `<DOC>` with `<DOCNO>` and the text in elements such as `<TEXT>`; it
is not well-formed XML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from realmctl.corpus.formats import MAX_TEXT_FILE, PageCounts, RawDocument, kept
from realmctl.errors import InputError
from realmctl.inputs import streams

DOC_ATTRIBUTE = re.compile(r'\b(id|title)="([^"]*)"')
DOCNO = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>", re.IGNORECASE | re.DOTALL)
TITLE = re.compile(r"<(?:TITLE|HEADLINE|HL)>(.*?)</(?:TITLE|HEADLINE|HL)>", re.IGNORECASE | re.DOTALL)
TEXT = re.compile(r"<(?:TEXT|LEADPARA|BODY)>(.*?)</(?:TEXT|LEADPARA|BODY)>", re.IGNORECASE | re.DOTALL)
TAG = re.compile(r"<[^<>]*>")


def read_doc_text(path: Path, counts: PageCounts, keep_lists: bool) -> Iterator[RawDocument]:
    """Yield the documents of WikiExtractor's text output."""
    for where, first, lines in _elements(path, "<doc ", "</doc>"):
        attributes = dict(DOC_ATTRIBUTE.findall(first))
        if "id" not in attributes:
            raise InputError(f"{where}: a <doc> without an id. Correct the line.")
        raw = RawDocument(attributes["id"], attributes.get("title", ""), "\n".join(lines), where, "wikiextractor")
        yield from kept(raw, counts, keep_lists)


def read_trec(path: Path, counts: PageCounts, keep_lists: bool) -> Iterator[RawDocument]:
    """Yield the documents of a TREC file: their <DOCNO>, the headline, and the text without tags."""
    for where, _, lines in _elements(path, "<DOC>", "</DOC>"):
        content = "\n".join(lines)
        identity = DOCNO.search(content)
        if not identity:
            raise InputError(f"{where}: a <DOC> without <DOCNO>. Correct or remove the document.")
        text = "\n\n".join(TEXT.findall(content)) or TITLE.sub("", DOCNO.sub("", content))
        title = TITLE.search(content)
        raw = RawDocument(identity[1], _without_tags(title[1]) if title else "", _without_tags(text), where)
        yield from kept(raw, counts, keep_lists)


def _without_tags(text: str) -> str:
    return html.unescape(TAG.sub(" ", text)).strip()


def _elements(path: Path, opening: str, closing: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (file:line, first line, further lines) of each element. Its tags must stand at the start of a line."""
    where, first, inside, size = "", "", list[str](), 0
    for number, line in streams.lines(path):
        if not where:
            if line.startswith(opening):
                where, first, inside, size = f"{path}:{number}", line, [], 0
            elif line.strip():
                raise InputError(f"{path}:{number}: text outside of {opening.strip()}. Correct or remove the line.")
        elif line.startswith(closing):
            yield where, first, inside
            where = ""
        else:
            inside.append(line)
            size += len(line) + 1
        if size > MAX_TEXT_FILE:
            raise InputError(f"{where}: a document of more than {MAX_TEXT_FILE // 2**20} MiB. Is {closing} missing?")
    if where:
        raise InputError(f"{where}: this document has no {closing}. The file is cut: get it again.")
