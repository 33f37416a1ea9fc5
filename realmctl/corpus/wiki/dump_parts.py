"""Cut a plain dump between pages, so that several processes can parse it.

The dump is searched for tags and not parsed. A part begins with `<page>`, and the parser first gets the head of the
dump: everything before its first page. In XML without declarations, comments, CDATA sections and instructions, all of
which begin with `<!` or `<?`, a tag cannot be anything else. So if one page follows another up to a cut, a parser that
reads the whole dump is outside of all pages there, as it is after the head, and reads on in the same way.
Where a dump looks different, the rest of it is one part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from realmctl.inputs import streams

HEAD_BYTES = 2**16
"""Longest head. English Wikipedia's has 3 KiB."""
HEAD = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:<\?xml\s[^<>]*\?>)?\s*<mediawiki\b[^<>]*>\s*"
    rb"(?:<siteinfo>[^<]*(?:<(?![!?]|/?(?:siteinfo|page)\b)[^<]*)*</siteinfo>\s*)?(?=<page>)"
)
PAGE, END = b"<page>", b"</mediawiki>"
SPACES = 64
"""Most white space between two pages. Dumps have three characters."""
TAG = re.compile(rb"</page>\s{0,%d}(?:%b|%b)|</?page\b|<[!?]" % (SPACES, PAGE, END))
"""What comes between two pages or after the last one, or else a tag of a page or the begin of markup."""
TAG_BYTES = len(b"</page>") + SPACES + len(END)


@dataclass(frozen=True)
class DumpPart:
    """The bytes of a dump from `begin` to `end`, which are whole pages. By default this is the whole dump.

    Attributes:
        head: size of the head.
        begin: where the first page begins.
        end: where the last page ends. None: the part reaches to the end of the dump.
        rest: whether this part is what is left, of any size, where pages cannot be told by their tags alone.
    """

    head: int = 0
    begin: int = 0
    end: int | None = None
    rest: bool = False

    @property
    def skipped(self) -> int:
        """The number of bytes between the head and this part."""
        return self.begin - self.head

    def pieces(self, path: Path) -> Iterator[bytes]:
        """Yield the head and this part as one XML document. The whole dump may be compressed."""
        if not self.head:
            yield from streams.decompressed(path)
            return
        yield from streams.section(path, 0, self.head)
        yield from streams.section(path, self.begin, self.end)
        if self.end is not None:
            yield END

    def skipped_lines(self, path: Path) -> int:
        """Return the number of lines between the head and this part."""
        return sum(piece.count(b"\n") for piece in streams.section(path, self.head, self.begin))


def parts(path: Path, size: int) -> Iterator[DumpPart]:
    """Yield the parts of a dump in order. Each has at least `size` bytes, and ends with the page that reaches them.

    The last part reaches to the end of the dump. A dump that is compressed, or has an unusual head, is one part.
    """
    head = _head_size(path)
    if not head:
        yield DumpPart(rest=True)
        return
    begin = head
    for end, tag in _tags(path, head + len(PAGE)):
        cut = end - len(PAGE)
        if tag.endswith(PAGE) and cut - begin >= size:
            yield DumpPart(head, begin, cut)
            begin = cut
        elif not tag.endswith((PAGE, END)):
            yield DumpPart(head, begin, rest=True)
            return
    yield DumpPart(head, begin)


def _head_size(path: Path) -> int:
    with path.open("rb") as file:
        head = HEAD.match(file.read(HEAD_BYTES))
    return head.end() if head else 0


def _tags(path: Path, begin: int) -> Iterator[tuple[int, bytes]]:
    """Yield what TAG finds from `begin` on, with the place where it ends.

    What begins in the last TAG_BYTES of the dump is not found. The last part is read to the end in any case.
    """
    held, at = b"", begin
    for piece in streams.section(path, begin):
        held += piece
        whole = len(held) - TAG_BYTES
        done = max(0, whole)
        for tag in TAG.finditer(held):
            if tag.start() > whole:
                break
            done = max(done, tag.end())
            yield at + tag.end(), tag[0]
        held, at = held[done:], at + done
