"""Collections of other projects: the passages of DPR and MS MARCO, the articles of SQuAD, TREC's document files, plain text.

DPR's psgs_w100.tsv has a header, then id, text and title with the quotes of CSV. MS MARCO's collection.tsv
(microsoft.github.io/msmarco) has no header: each line is an id, a tab and the passage. TREC (trec.nist.gov) writes `<DOC>` with
`<DOCNO>` and the text in elements such as `<TEXT>`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

from realmctl.corpus.document import Document
from realmctl.corpus.formats.records import encodable
from realmctl.corpus.formats.tagged import MAX_TEXT_FILE, elements
from realmctl.errors import InputError
from realmctl.inputs import streams
from realmctl.inputs.rows import text_rows, unquoted

MAX_JSON_FILE = 2**28
DOCNO = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>", re.IGNORECASE | re.DOTALL)
TITLE = re.compile(r"<(?:TITLE|HEADLINE|HL)>(.*?)</(?:TITLE|HEADLINE|HL)>", re.IGNORECASE | re.DOTALL)
TEXT = re.compile(r"<(?:TEXT|LEADPARA|BODY)>(.*?)</(?:TEXT|LEADPARA|BODY)>", re.IGNORECASE | re.DOTALL)
TAG = re.compile(r"<[^<>]*>")


def read_dpr(path: Path) -> Iterator[Document]:
    """Yield the passages of DPR's psgs_w100.tsv."""
    for where, line in text_rows(path, skip=1):
        fields = [unquoted(value) for value in line.split("\t")]
        if len(fields) != 3:
            raise InputError(
                f"{where}: {len(fields)} columns, but id, text and title are expected. Correct or remove the line."
            )
        yield Document(fields[0], fields[2], fields[1], where=where)


def read_ms_marco(path: Path) -> Iterator[Document]:
    """Yield the passages of MS MARCO's collection.tsv; they have no titles."""
    for where, line in text_rows(path):
        identity, tab, text = line.partition("\t")
        if not tab or "\t" in text:
            raise InputError(
                f"{where}: {line.count(chr(9)) + 1} columns, but MS MARCO's collection has an id and a passage. Correct or "
                "remove the line."
            )
        yield Document(identity.strip(), "", text, where=where)


def read_squad(path: Path) -> Iterator[Document]:
    """Yield the articles of a SQuAD-layout file. The paragraphs of an article are one document."""
    try:
        articles = json.loads(streams.whole_text(path, MAX_JSON_FILE))["data"]
        for number, article in enumerate(articles):
            title, where = article["title"], f"{path}, article {number}"
            text = "\n".join(paragraph["context"].strip() for paragraph in article["paragraphs"])
            yield Document(encodable(title, where), title.replace("_", " "), encodable(text, where), where=where)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path}: not in SQuAD's layout, data[].paragraphs[].context ({type(error).__name__}: {error}). "
            f"Correct the file."
        ) from None


def read_trec(path: Path) -> Iterator[Document]:
    """Yield the documents of a TREC file: their <DOCNO>, the headline, and the text without tags."""
    for where, _, lines in elements(path, "<DOC>", "</DOC>"):
        content = "\n".join(lines)
        identity = DOCNO.search(content)
        if not identity:
            raise InputError(f"{where}: a <DOC> without <DOCNO>. Correct or remove the document.")
        text = "\n\n".join(TEXT.findall(content)) or TITLE.sub("", DOCNO.sub("", content))
        title = TITLE.search(content)
        yield Document(identity[1], _without_tags(title[1]) if title else "", _without_tags(text), where=where)


def _without_tags(text: str) -> str:
    return html.unescape(TAG.sub(" ", text)).strip()


def read_plain(path: Path) -> Iterator[Document]:
    """Yield a text file as one document, titled by its file name."""
    title = path.name.partition(".")[0]
    yield Document(title, title.replace("_", " "), streams.whole_text(path, MAX_TEXT_FILE), where=str(path))
