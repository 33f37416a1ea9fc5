"""A zip archive of XML: its parts as trees of elements, and what their names mean in every edition of a standard."""

from __future__ import annotations

import io
import posixpath
import re
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import unquote

MAX_XML_BYTES = 2**27
"""Bytes of the parts of an archive that are read, together."""
OFFICE, STRICT = "http://schemas.openxmlformats.org/", "http://purl.oclc.org/ooxml/"
OPEN = "urn:oasis:names:tc:opendocument:xmlns:"
PREFIXES = {
    **{
        f"{base}{name}": prefix
        for prefix, last in {
            "w": "wordprocessingml/main",
            "a": "drawingml/main",
            "p": "presentationml/main",
            "x": "spreadsheetml/main",
            "c": "drawingml/chart",
            "dgm": "drawingml/diagram",
            "m": "officeDocument/math",
            "r": "officeDocument/relationships",
        }.items()
        for base, name in ((OFFICE, last.replace("/", "/2006/")), (STRICT, last))
    },
    "http://schemas.microsoft.com/office/drawing/2014/chartex": "cx",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    "http://schemas.openxmlformats.org/package/2006/relationships": "rel",
    "urn:schemas-microsoft-com:vml": "v",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://www.idpf.org/2007/opf": "opf",
    "http://www.w3.org/1999/xhtml": "html",
    "http://www.w3.org/XML/1998/namespace": "xml",
    **{f"{OPEN}{name}:1.0": name for name in ("text", "table", "office", "style", "form", "presentation", "chart")},
    f"{OPEN}drawing:1.0": "draw",
}
WORD = re.compile(r"\w+")


class Archive:
    """The parts of an archive.

    Raises zipfile.BadZipFile for what is none, and ValueError where its XML has more than MAX_XML_BYTES.
    """

    def __init__(self, data: bytes) -> None:
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self._left = MAX_XML_BYTES
        self.names = frozenset(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """A part as it stands."""
        with self._zip.open(name) as stream:
            data = stream.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"its XML has more than {MAX_XML_BYTES // 2**20} MiB")
        return data

    def tree(self, name: str) -> ET.Element | None:
        """The root element of a part; None where there is no such part. Raises ET.ParseError."""
        return ET.fromstring(self.read(name)) if name in self.names else None

    def related(self, name: str) -> dict[str, tuple[str, str]]:
        """The parts that a part points to, by the ids of their relations: the last word of the relation's type, and the name of the part."""
        folder, file = posixpath.split(name)
        root = self.tree(f"{folder}/_rels/{file}.rels".lstrip("/"))
        return {
            each.get("Id", ""): (each.get("Type", "").rpartition("/")[2], beside(name, each.get("Target", "")))
            for each in (root if root is not None else ())
            if each.get("TargetMode") != "External"
        }

    def with_parts(self, changed: Mapping[str, bytes]) -> bytes:
        """The archive with other bytes for some of its parts, and without pictures and sounds."""
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
            for name in self._zip.namelist():
                if name in changed:
                    new.writestr(name, changed[name])
                elif name == "mimetype" or name.endswith((".xml", ".rels", ".rdf")):
                    new.writestr(name, self.read(name))
        return made.getvalue()


def beside(name: str, target: str) -> str:
    """The name of the part that `target` means within the part `name`."""
    target = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(name), target)).lstrip("/")


@lru_cache(2**12)
def short(tag: str) -> str:
    """The name of an element or attribute with its usual prefix, such as `w:t`; `?:` where the namespace is none of ours, and none where it has none."""
    namespace, _, name = tag[1:].rpartition("}") if tag[:1] == "{" else ("", "", tag)
    return f"{PREFIXES.get(namespace, '?')}:{name}" if namespace else name


def attribute(element: ET.Element, name: str) -> str | None:
    """The value of an attribute by its usual name; None where there is none."""
    return next((value for each, value in element.items() if short(each) == name), None)


def child(element: ET.Element, *path: str) -> ET.Element | None:
    """The first child of this name, its first child of the next name, and so on."""
    found: ET.Element | None = element
    for name in path:
        found = next((each for each in found if short(each.tag) == name), None) if found is not None else None
    return found


def shown_alternative(element: ET.Element) -> list[ET.Element]:
    """The children of the alternative that programs of today show: the first choice, or the fallback where the choice has no text."""
    for each in element:
        if any((node.text or "").strip() for node in each.iter()):
            return list(each)
    return [node for each in element[:1] for node in each]


def serialized(root: ET.Element, data: bytes) -> bytes:
    """A part as bytes, with the prefixes of the bytes that it was read from: pandoc goes by them."""
    for _, (prefix, uri) in ET.iterparse(io.BytesIO(data), ("start-ns",)):
        if not re.fullmatch(r"ns\d+", prefix):
            ET.register_namespace(PREFIXES.get(uri, prefix) if prefix else PREFIXES.get(uri, ""), uri)
    made: bytes = ET.tostring(root, "utf-8", xml_declaration=True)
    return made


def words(texts: Iterable[str]) -> Counter[str]:
    """How often each word stands in these texts."""
    return Counter(word for text in texts for word in WORD.findall(text))
