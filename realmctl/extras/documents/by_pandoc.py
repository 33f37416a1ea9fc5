"""Read office documents, e-books, notebooks and other markup as pages of HTML, which pandoc writes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import PAGE_SECONDS, Document, Found
from realmctl.corpus.formats.tagged import MAX_TEXT_FILE
from realmctl.errors import InputError, ResourceError, require_package
from realmctl.execution.deadline import DeadlineError, deadline
from realmctl.extras.documents import (
    apart,
    asciidoc,
    charsets,
    latex,
    notebooks,
    org,
    rich_text,
    sphinx,
    troff,
    typst,
    wiki_marks,
    xml_markup,
)
from realmctl.extras.documents.pages import document_of
from realmctl.inputs import streams

MAX_OFFICE_BYTES = 2**28
HEAP_EXHAUSTED, UNKNOWN_FORMAT = 251, 21
"""Exit codes of pandoc."""
READ: dict[str, str] = {
    "rtf": "RTF document",
    "ipynb": "Jupyter notebook",
    "jats": "JATS article",
    "docbook": "DocBook",
    "rst": "reStructuredText",
    "asciidoc": "AsciiDoc",
    "org": "Org",
    "latex": "LaTeX",
    "typst": "Typst",
    "man": "man page",
    "mdoc": "man page of BSD",
    "pod": "Perl documentation",
    "mediawiki": "MediaWiki page",
    "textile": "Textile",
    "fb2": "FictionBook",
    "opml": "outline",
    "dokuwiki": "DokuWiki page",
    "jira": "Jira text",
    "creole": "Creole",
    "twiki": "TWiki page",
    "tikiwiki": "TikiWiki page",
    "vimwiki": "Vimwiki page",
    "muse": "Muse",
    "t2t": "txt2tags",
    "djot": "Djot",
    "haddock": "Haddock",
    "bits": "BITS book",
}
"""Formats by the names that pandoc and `--format` have for them."""
EXTRA = "pip install 'realmctl[documents]'"
MARKUP_ENDINGS = {
    ".ipynb": "ipynb",
    ".rst": "rst",
    ".adoc": "asciidoc",
    ".asciidoc": "asciidoc",
    ".org": "org",
    ".tex": "latex",
    ".dbk": "docbook",
    ".typ": "typst",
    ".pod": "pod",
    ".mediawiki": "mediawiki",
    ".wiki": "mediawiki",
    ".textile": "textile",
    ".fb2": "fb2",
    ".opml": "opml",
    ".dokuwiki": "dokuwiki",
    ".jira": "jira",
    ".creole": "creole",
    ".twiki": "twiki",
    ".tiki": "tikiwiki",
    ".vimwiki": "vimwiki",
    ".muse": "muse",
    ".t2t": "t2t",
    ".dj": "djot",
    ".djot": "djot",
}
"""Texts that are told by their endings."""

SHOW_BYLINES = frozenset({"docx", "latex", "org", "rst", "asciidoc", "jats", "typst"})
"""Formats whose pages show the names of the authors and the date below the title."""
PREPARED: dict[str, Callable[[str], str]] = {
    "rst": sphinx.as_text,
    "asciidoc": asciidoc.as_text,
    "ipynb": notebooks.as_shown,
    "latex": latex.as_text,
    "man": troff.as_text,
    "docbook": xml_markup.docbook,
    "jats": xml_markup.jats,
    "bits": xml_markup.jats,
    "fb2": xml_markup.fiction_book,
    "org": org.as_text,
    "typst": typst.as_text,
    "rtf": rich_text.as_text,
    "dokuwiki": wiki_marks.dokuwiki,
    "jira": wiki_marks.jira,
    "creole": wiki_marks.creole,
    "tikiwiki": wiki_marks.tikiwiki,
    "twiki": wiki_marks.twiki,
    "vimwiki": wiki_marks.vimwiki,
    "mediawiki": wiki_marks.mediawiki,
}
"""What makes of a source one that pandoc reads as its own tool does."""
XML = frozenset({"docbook", "jats", "bits", "fb2"})
"""Formats whose words are compared with the text."""
MAN_PAGES = frozenset({"man", "mdoc"})
NAME_OF_MAN_PAGE = re.compile(r"\S.*? [-\u2013\u2014] \S")
LONGEST_NAME = 200
"""Longest line of names and purpose that is a title. Some man pages name dozens of functions."""


def read_by_pandoc(file: CorpusFile, name: str) -> Iterator[Found]:
    """Yield a file of this format as one document, titled by its metadata, or by its first heading, or by its file; a man page by its name and purpose.

    Raises:
        InputError: The file is damaged or too large.
        ResourceError: pandoc or the extra `documents` is not installed, or this pandoc is too old for the format.
    """
    require_package("selectolax", "documents", f"{file.path} is read as {READ[name]}, which")
    data = streams.whole_bytes(file.path, MAX_OFFICE_BYTES)
    source = charsets.source_text(file.path, data, MAX_OFFICE_BYTES)
    written = source
    if name in PREPARED:
        try:
            with deadline(PAGE_SECONDS):
                source = PREPARED[name](source)
        except DeadlineError:
            raise unreadable(file, READ[name], f"it takes more than {PAGE_SECONDS:g} s of a core") from None
    html = html_by_pandoc(file, name, READ[name], source.encode())
    found = document_of(file, "rst" if name == "rst" else "man" if name in MAN_PAGES else "content", html)
    if isinstance(found, Document) and name in MAN_PAGES:
        found = _named(found)
    elif isinstance(found, Document) and name in XML:
        found = replace(found, lost=xml_markup.lost(written, f"{found.title}\n{found.text}"))
    yield found


def html_by_pandoc(file: CorpusFile, name: str, called: str, data: bytes) -> str:
    """Return what pandoc reads of `data`, which is of its format `name`, as a page of HTML. Raises as `read_by_pandoc`; `called` names the format."""
    options = [f"--template={Path(__file__).with_name('pandoc.html')}", "--wrap=none"]
    if name in SHOW_BYLINES:
        options.append("--variable=bylines")
    return written_by_pandoc(file, name, called, data, "html", options)


def written_by_pandoc(
    file: CorpusFile, name: str, called: str, data: bytes, to: str, options: Sequence[str] = ()
) -> str:
    """Return what pandoc writes of `data` in its format `to`. Other arguments and errors: as of `html_by_pandoc`."""
    what = f"{file.path} is read as {called}, which"
    program = _pandoc()
    if program is None:
        raise ResourceError(
            f"{what} needs the program pandoc, which is not installed. Install the extra that contains it: {EXTRA}."
        )
    command = [program, "--sandbox", f"--from={name}", f"--to={to}", *options]
    memory = f"-M{apart.MAX_PARSE_MEMORY // 2**20}m"
    parsed = apart.parse([*command, "+RTS", memory, "-RTS"], data)
    if parsed.code == UNKNOWN_FORMAT:
        raise ResourceError(
            f"{what} needs a newer pandoc than {program}. Install the extra that contains one: {EXTRA}."
        )
    why = parsed.stopped
    if parsed.code == HEAP_EXHAUSTED:
        why = f"it takes more than {apart.MAX_PARSE_MEMORY // 2**30} GiB of memory"
    elif parsed.code and not why:
        why = f"pandoc says: {' '.join(parsed.errors.split())[:200]}"
    elif len(parsed.output) > MAX_TEXT_FILE:
        why = f"its text has more than {MAX_TEXT_FILE // 2**20} MiB"
    if why:
        raise unreadable(file, called, why)
    return parsed.output.decode(errors="replace")


def unreadable(file: CorpusFile, called: str, why: str) -> InputError:
    return InputError(f"{file.path} cannot be read as {called}, because {why}. Save it anew, or leave it out.")


def _named(page: Document) -> Document:
    """A man page titled by what its first section says, `ls - list directory contents`, instead of by `LS`."""
    heading, _, rest = page.text.partition("\n")
    line = rest.partition("\n")[0]
    is_told = (
        page.leads and page.leads[0].end == len(heading) and len(line) <= LONGEST_NAME and NAME_OF_MAN_PAGE.match(line)
    )
    return replace(page, title=line) if is_told else page


@cache
def _pandoc() -> str | None:
    """The pandoc of the extra, or that of the system."""
    found = find_spec("pypandoc")
    own = Path(found.origin).with_name("files") / "pandoc" if found is not None and found.origin else None
    return str(own) if own is not None and own.exists() else shutil.which("pandoc")
