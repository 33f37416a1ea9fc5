"""Edits that outlive their source: what a revision changed in single documents is applied again when `chunk` reads the source anew.

A version that was made by edits records which documents differ from its source, and a digest of each in the source. A document is edited
as long as it differs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from realmctl.artifacts import Artifact
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.fields import Fields
from realmctl.errors import InputError, listed
from realmctl.log import say, warn

METRIC = "edits"
MOST_EDITED = 50_000
"""Limit on the documents that differ from their source by edits: the manifest names each."""
"""Documents that a message names."""


@dataclass(frozen=True)
class KeptEdits:
    """What differs from the source in blocks that were edited.

    source: the recipe of the blocks that were cut from it.
    documents: {id: digest of the document in the source}; None where the source has no such document.
    """

    source: str
    documents: Mapping[str, str | None]

    @classmethod
    def of(cls, blocks: Artifact) -> KeptEdits | None:
        """Return those of a version, or None where nothing differs. Raises InputError for what no revision records."""
        match blocks.metrics.get(METRIC):
            case None:
                return None
            case {"source": str(source), "documents": dict(documents)} if all(
                value is None or isinstance(value, str) for value in documents.values()
            ):
                return cls(source, documents)
        raise InputError(f"{blocks} records edits in a form that is not known. Make it again.")

    def metric(self) -> dict[str, object]:
        """What the manifest of the edited blocks records: nothing where no document differs."""
        return {METRIC: asdict(self)} if self.documents else {}


class DocumentDigests:
    """Digests of documents, of which blocks come in order. They hold the words of title and text, wherever the text is cut."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted, self._found = wanted, dict[str, hashlib.blake2b]()

    def add(self, block: Block) -> None:
        """Add a block, if its document is wanted."""
        if block.document in self._wanted:
            start = hashlib.blake2b(f"{block.title}\0".encode(), digest_size=16)
            self._found.setdefault(block.document, start).update("".join(block.text.split()).encode())

    def found(self) -> dict[str, str]:
        """Return {id: digest} of the wanted documents that there are."""
        return {name: digest.hexdigest() for name, digest in self._found.items()}


def digests_of(blocks: Artifact, wanted: Collection[str]) -> dict[str, str]:
    """Return {id: digest} of the wanted documents that blocks have."""
    digests = DocumentDigests(wanted)
    for block in Corpus(blocks) if wanted else ():
        digests.add(block)
    return digests.found()


def still_edited(former: Artifact, edited: Collection[str], revised: Mapping[str, str]) -> KeptEdits:
    """Return what differs from the source after a revision.

    Args:
        former: the blocks before it.
        edited: ids of the documents that it changed, added or removed.
        revised: digests of these documents, and of those that differed before, in the revised blocks.
    """
    before = KeptEdits.of(former) or KeptEdits(former.recipe, {})
    there = digests_of(former, edited)
    sources = {**{name: there.get(name) for name in edited}, **before.documents}
    kept = {name: it for name, it in sorted(sources.items()) if revised.get(name) != it}
    if len(kept) > MOST_EDITED:
        raise InputError(
            f"{len(kept):,} documents of {former} would differ from their source, and {MOST_EDITED:,} is the limit of what is kept as edits. "
            "Name the whole corpus as it is now: realmctl revise --corpus."
        )
    return KeptEdits(before.source, kept)


def apply_again(fresh: Artifact, former: Artifact, path: Path) -> bool:
    """Write the edits of `former` that hold for blocks cut from the source anew as an edits file, and tell which do not.

    A text that was edited stays edited, also where its source changed. A document that was deleted by an edit comes back when its
    source changes, and one that was edited goes when its source is deleted. Each is told by its id.

    Args:
        fresh: blocks of the source as it is now.
        former: the version with edits.
        path: the edits file to write.

    Returns:
        Whether there is any edit to apply.
    """
    kept = KeptEdits.of(former)
    assert kept
    now, then = digests_of(fresh, kept.documents), digests_of(former, kept.documents)
    texts = _texts(former, kept.documents)
    applied, both, back, gone = list[str](), list[str](), list[str](), list[str]()
    with path.open("w", encoding="utf-8") as file:
        for name in [*texts, *sorted(kept.documents.keys() - texts.keys())]:  # what was added keeps its order
            here, source = now.get(name), kept.documents[name]
            if then.get(name) == here:
                continue  # the source says now what the edit said
            edit: dict[str, object] = {"id": name}
            if name not in texts:
                edit["op"] = "remove"
                if here != source:
                    back.append(name)
                    continue
            elif here is None and source is not None:
                gone.append(name)
                continue
            else:
                title, text, fields = texts[name]
                edit |= {"op": "add" if here is None else "update", "title": title, "text": text, "fields": fields}
                if here != source:
                    both.append(name)
            applied.append(name)
            file.write(f"{json.dumps(edit)}\n")
    if applied:
        say(f"chunk: the edits of {former.path} are kept: {listed(applied)}")
    whole = "To take all of the source, run `realmctl revise --corpus` with it."
    for names, what in (
        (both, f"edited, and their source changed too. The edit stays. {whole}"),
        (back, "deleted by an edit, and their source changed since. They are back."),
        (gone, f"edited, and their source is deleted. They are gone; {former.path} has their edited text."),
    ):
        if names:
            warn(f"{listed(names)}: these documents were {what}")
    return bool(applied)


def _texts(blocks: Artifact, wanted: Collection[str]) -> dict[str, tuple[str, str, Fields]]:
    """Title, text and fields of the wanted documents."""
    found = dict[str, tuple[str, list[str], Fields]]()
    for block in Corpus(blocks):
        if block.document in wanted:
            found.setdefault(block.document, (block.title, [], block.fields))[1].append(block.text)
    return {
        name: (title, ("\n" if any("\n" in text for text in texts) else " ").join(texts), fields)
        for name, (title, texts, fields) in found.items()
    }


def told_of_loss(blocks: Artifact) -> None:
    """Warn of the edits that a revision to a whole corpus leaves out."""
    if kept := KeptEdits.of(blocks):
        warn(f"the edits of {blocks.path} are left out, since --corpus is the whole corpus: {listed(kept.documents)}")
