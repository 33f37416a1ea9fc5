"""DocBook, JATS and FictionBook in the elements that pandoc reads: titles, labels, captions, keywords, notes, references and tables that it drops become paragraphs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator

TITLED_LISTS = frozenset({"variablelist", "procedure", "task", "equation", "calloutlist", "qandaset"})
"""Elements of DocBook whose title pandoc drops."""
LABELLED = {"fig": "caption", "table-wrap": "caption", "supplementary-material": "caption", "sec": "", "statement": "", "boxed-text": "caption"}  # fmt: skip
"""Elements of JATS with a label, and where the title is that it stands before."""


NOT_SHOWN = frozenset(
    ["aff", "alt-text", "alternate-form", "annotation", "article-categories", "article-id", "articleinfo", "author-notes", "binary", "book-id", "bookinfo", "chapterinfo", "collab-alternatives",
     "comment", "contrib-group", "counts", "custom-meta-group", "date-in-citation", "description", "funding-group", "graphic", "history", "imageobject", "indexterm", "info", "isbn", "issn", "journal-meta", "link-annotation",
     "long-desc", "math", "object-id", "permissions", "processing-meta", "pub-date", "pub-id", "publisher", "refentryinfo", "related-article", "remark", "self-uri", "sectioninfo", "stylesheet",
     "subj-group", "tex-math", "textobject", "videoobject"]
)  # fmt: skip
"""Elements whose words no reader of the page sees, or sees as a formula."""
WORD = re.compile(r"[^\W\d_]{4,}")
"""A word that marks beside it, such as those of indices, leave whole."""


def docbook(source: str) -> str:
    return _changed(source, _docbook)


def jats(source: str) -> str:
    return _changed(source, _jats)


def fiction_book(source: str) -> str:
    return _changed(source, _fiction_book)


def _changed(source: str, change: Callable[[ET.Element, str], None]) -> str:
    """A source after a change of its tree; what is no XML, or has entities of its own, stays, and pandoc says what is wrong with it."""
    if "<!ENTITY" in source:
        return source
    try:
        root = ET.fromstring(source)
    except (ET.ParseError, ValueError, RecursionError):
        return source
    namespace = root.tag[: root.tag.find("}") + 1] if root.tag[:1] == "{" else ""
    if namespace:
        ET.register_namespace("", namespace[1:-1])
    try:
        change(root, namespace)
        return ET.tostring(root, "unicode")
    except RecursionError:
        return source


def lost(source: str, shown: str) -> str:
    """How many of the different words of an XML source are nowhere in the text that came out, with the first ones; empty if none is missing."""
    if "<!ENTITY" in source:
        return ""
    try:
        held = dict.fromkeys(word for text in _held(ET.fromstring(source)) for word in WORD.findall(text))
    except (ET.ParseError, ValueError, RecursionError):
        return ""
    here, whole = {*WORD.findall(shown)}, re.sub(r"\W|_", "", shown)
    missing = [word for word in held if word not in here and word not in whole]
    if not missing:
        return ""
    return f"{len(missing):,} of its {len(held):,} different words ({len(missing) / len(held):.1%}), such as {', '.join(map(repr, missing[:3]))}"


def _held(element: ET.Element) -> Iterator[str]:
    if isinstance(element.tag, str) and element.tag.rpartition("}")[2] not in NOT_SHOWN:
        yield element.text or ""
        for child in element:
            yield from _held(child)
            yield child.tail or ""


def _text(element: ET.Element | None) -> str:
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def _made(tag: str, text: str) -> ET.Element:
    made = ET.Element(tag)
    made.text = text
    return made


def _parents(root: ET.Element) -> list[tuple[ET.Element, ET.Element]]:
    """Each element with the one around it."""
    return [(child, parent) for parent in root.iter() for child in parent]


def _insert(parent: ET.Element, beside: ET.Element, made: ET.Element, behind: bool = False) -> None:
    place = list(parent).index(beside) + behind
    if behind:
        made.tail, beside.tail = beside.tail, None
    parent.insert(place, made)


def _fiction_book(root: ET.Element, ns: str) -> None:
    for element, parent in _parents(root):
        if element.tag == f"{ns}table":
            for row in element.iter(f"{ns}tr"):
                _insert(parent, element, _made(f"{ns}p", " | ".join(map(_text, row))))
            parent.remove(element)


def _docbook(root: ET.Element, ns: str) -> None:
    for element, parent in _parents(root):
        kind = element.tag.removeprefix(ns) if isinstance(element.tag, str) else ""
        title = element.find(f"{ns}title")
        if kind in TITLED_LISTS and title is not None:
            element.remove(title)
            _insert(parent, element, _made(f"{ns}para", _text(title)))
        elif kind == "subtitle" and parent.find(f"{ns}title") is not None and parent is not root:
            element.tag = f"{ns}para"
        elif kind == "mediaobject":
            for caption in element.findall(f"{ns}caption"):
                element.remove(caption)
                _move_behind(root, parent, caption, ns)
        elif kind == "biblioentry":
            words = ", ".join(_leaves(element))
            element.clear()
            element.tag, element.text = f"{ns}bibliomixed", words
        elif kind == "tfoot" and (body := parent.find(f"{ns}tbody")) is not None:
            parent.remove(element)
            body.extend(list(element))


def _move_behind(root: ET.Element, figure: ET.Element, caption: ET.Element, ns: str) -> None:
    """Put a caption behind the figure that it belongs to."""
    around = next((parent for child, parent in _parents(root) if child is figure), None)
    if around is not None and figure.tag in (f"{ns}figure", f"{ns}informalfigure"):
        _insert(around, figure, _made(f"{ns}para", _text(caption)), behind=True)
    else:
        figure.append(_made(f"{ns}para", _text(caption)))


def _leaves(element: ET.Element) -> Iterator[str]:
    """Yield the texts of an element, each element within it once."""
    for text in [element.text, *(part for child in element for part in (*_leaves(child), child.tail))]:
        if found := " ".join((text or "").split()):
            yield found


def _jats(root: ET.Element, ns: str) -> None:
    asked = {each.get("rid") for each in root.iter(f"{ns}xref")}
    for element, parent in _parents(root):
        kind = element.tag.removeprefix(ns) if isinstance(element.tag, str) else ""
        label = element.find(f"{ns}label")
        if kind == "ruby":
            reading = element.find(f"{ns}rt")
            if reading is not None:
                reading.text = f"({reading.text or ''})"
        elif kind == "attrib" and parent.tag == f"{ns}disp-quote":
            element.tag, element.text = f"{ns}p", f"\u2014 {element.text or ''}"
        elif kind == "list-item" and label is not None:
            _before(element.find(f"{ns}p"), element, label)
        elif kind in LABELLED and label is not None:
            around = element.find(f"{ns}{LABELLED[kind]}") if LABELLED[kind] else element
            first = (
                None
                if around is None
                else next((each for each in around if each.tag in (f"{ns}title", f"{ns}p")), None)
            )
            _before(first, element, label)
        elif kind == "disp-formula" and label is not None:
            element.remove(label)
            _insert(parent, element, _made(f"{ns}p", _text(label)), behind=True)
        elif kind == "abstract" and (title := element.find(f"{ns}title")) is not None:
            title.tag = f"{ns}p"
        elif kind == "ref-list":
            _references(element, ns)
        elif kind == "fn-group":
            made = ET.Element(f"{ns}sec")
            for note in element.findall(f"{ns}fn"):
                if (
                    not note.get("id") or note.get("id") not in asked
                ):  # pandoc shows the others where they are asked for
                    element.remove(note)
                    made.append(_made(f"{ns}p", _text(note)))
            if len(made):
                _insert(parent, element, made, behind=True)
    _front(root, ns)


def _before(first: ET.Element | None, element: ET.Element, label: ET.Element) -> None:
    """Put a label before the text of the element that it belongs to."""
    if first is not None:
        element.remove(label)
        first.text = f"{_text(label)} {first.text or ''}"


def _references(element: ET.Element, ns: str) -> None:
    """Make of a list of references a section with a list."""
    made = ET.Element(f"{ns}list", {"list-type": "simple"})
    for reference in element.findall(f"{ns}ref"):
        cited = next(
            (each for each in reference if "citation" in each.tag and each.tag != f"{ns}citation-alternatives"),
            reference,
        )
        text = _text(cited) if cited.tag == f"{ns}mixed-citation" else ", ".join(_leaves(cited))
        item = ET.SubElement(made, f"{ns}list-item")
        item.append(
            _made(
                f"{ns}p",
                " ".join(filter(None, (_text(reference.find(f"{ns}label")) if cited is not reference else "", text))),
            )
        )
        element.remove(reference)
    element.tag = f"{ns}sec"
    element.append(made)


def _front(root: ET.Element, ns: str) -> None:
    """Put translated abstracts and keywords at the beginning of the body."""
    body, meta = root.find(f"{ns}body"), root.find(f"{ns}front/{ns}article-meta")
    if body is None or meta is None:
        return
    shown = list[ET.Element]()
    for abstract in meta.findall(f"{ns}trans-abstract"):
        shown += [_made(f"{ns}p", _text(each)) for each in abstract.iter() if each.tag in (f"{ns}p", f"{ns}title")]
    for group in meta.findall(f"{ns}kwd-group"):
        shown.append(_made(f"{ns}p", ", ".join(filter(None, map(_text, group.iter(f"{ns}kwd"))))))
    body[:0] = shown
