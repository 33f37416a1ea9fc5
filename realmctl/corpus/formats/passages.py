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

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, Dropped, Found
from realmctl.corpus.fields import kept
from realmctl.corpus.formats.records import IDS, encodable
from realmctl.corpus.formats.tagged import MAX_TEXT_FILE, elements
from realmctl.corpus.wrapped import unwrapped
from realmctl.errors import InputError
from realmctl.inputs import streams
from realmctl.inputs.rows import text_rows, unquoted

MAX_JSON_FILE = 2**28
DOCNO = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>", re.IGNORECASE | re.DOTALL)
TITLE = re.compile(r"<(?:TITLE|HEADLINE|HEAD|HL)>(.*?)</(?:TITLE|HEADLINE|HEAD|HL)>", re.IGNORECASE | re.DOTALL)
TEXT = re.compile(r"<(?:TEXT|LEADPARA|BODY)>(.*?)</(?:TEXT|LEADPARA|BODY)>", re.IGNORECASE | re.DOTALL)
TAG = re.compile(r"<[/!?A-Za-z][^<>]*>")


def read_dpr(file: CorpusFile) -> Iterator[Document]:
    """Yield the passages of DPR's psgs_w100.tsv, or of a part of it, whose first line need not be the header."""
    for number, (where, line) in enumerate(text_rows(file.path)):
        fields = [unquoted(value) for value in line.split("\t")]
        if number == 0 and fields[0].strip().lower() == "id":
            continue
        if len(fields) != 3:
            raise InputError(
                f"{where}: {len(fields)} columns, but id, text and title are expected. Correct or remove the line."
            )
        yield Document(fields[0], fields[2], fields[1], where=where)


def read_ms_marco(file: CorpusFile) -> Iterator[Document]:
    """Yield the passages of MS MARCO's collection.tsv; they have no titles."""
    for number, (where, line) in enumerate(text_rows(file.path)):
        identity, tab, text = line.partition("\t")
        if not tab or "\t" in text:
            raise InputError(
                f"{where}: {line.count(chr(9)) + 1} columns, but MS MARCO's collection has an id and a passage. Correct or "
                "remove the line."
            )
        if number or identity.strip().lower() not in IDS:  # a header, which the published file has not
            yield Document(identity.strip(), "", text, where=where)


def read_squad(file: CorpusFile) -> Iterator[Document]:
    """Yield the articles of a SQuAD-layout file. The paragraphs of an article are one document, and its passages.

    The layout has no ids, and titles repeat, so an article's id is the name of the file and its number.
    """
    path = file.path
    try:
        articles = json.loads(streams.whole_text(path, MAX_JSON_FILE))["data"]
        for number, article in enumerate(articles):
            title, where = article.get("title") or "", f"{path}, article {number}"
            passages = tuple(encodable(paragraph["context"].strip(), where) for paragraph in article["paragraphs"])
            title = encodable(title, where).replace("_", " ")
            yield Document(f"{file.name}-{number}", title, "\n".join(passages), passages=passages, where=where)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path}: not in SQuAD's layout, data[].paragraphs[].context ({type(error).__name__}: {error}). "
            f"Correct the file."
        ) from None


def read_trec(file: CorpusFile) -> Iterator[Document]:
    """Yield the documents of a TREC file: their <DOCNO>, the headline, the text without tags, and elements that `--keep-fields` names, such as <DATE>."""
    names = {name: _element(name) for name in file.settings.kept_fields}
    for where, _, lines in elements(file.path, "<DOC>", "</DOC>"):
        content = "\n".join(lines)
        identity = DOCNO.search(content)
        if not identity:
            raise InputError(f"{where}: a <DOC> without <DOCNO>. Correct or remove the document.")
        text = "\n\n".join(TEXT.findall(content)) or TITLE.sub("", DOCNO.sub("", content))
        title = TITLE.search(content)
        held = {name: pattern.findall(content) for name, pattern in names.items()}
        fields = kept({name: _without_tags(values[0]) for name, values in held.items() if values})
        yield Document(
            identity[1], _without_tags(title[1]) if title else "", _without_tags(text), fields=fields, where=where
        )


def _element(name: str) -> re.Pattern[str]:
    return re.compile(rf"<{re.escape(name)}>(.*?)</{re.escape(name)}>", re.IGNORECASE | re.DOTALL)


def _without_tags(text: str) -> str:
    return html.unescape(TAG.sub(" ", text)).strip()


def read_plain(file: CorpusFile) -> Iterator[Found]:
    """Yield a text file as one document, titled by its file name. Its lines are kept, but for those of paragraphs that are wrapped."""
    text = unwrapped(streams.whole_text(file.path, MAX_TEXT_FILE).replace("\r\n", "\n"))
    if text.strip():
        yield Document(file.name, file.stem.replace("_", " "), text, has_lines=True, where=str(file.path))
    else:
        yield Dropped(file.name, "empty")
