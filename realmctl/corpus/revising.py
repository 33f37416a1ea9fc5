"""The next version of blocks, after documents were added, changed or removed: what `realmctl revise` does."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from realmctl.artifacts import Artifact, Writer, tokenizer_folder
from realmctl.artifacts.records import Records
from realmctl.corpus.blocks import Block
from realmctl.corpus.chunking import ChunkedUnit, chunk_unit, map_chunks, prepare, size_metrics, write_blocks
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.document import Document, SkippedPage
from realmctl.corpus.edits import apply_edits, read_edits
from realmctl.corpus.fields import NOTHING
from realmctl.corpus.kept_edits import DocumentDigests, KeptEdits, still_edited, told_of_loss
from realmctl.corpus.reading import PageCounts, documents
from realmctl.corpus.sections import BETWEEN
from realmctl.corpus.settings import ChunkSettings
from realmctl.corpus.work_units import units
from realmctl.errors import InputError
from realmctl.execution.shards import LOCAL
from realmctl.log import warn
from realmctl.tokens.tokenizer import Tokenizer


def revise_blocks(
    blocks: Artifact,
    settings: ChunkSettings,
    corpus: Sequence[Path],
    edits: Path | None,
    out: Writer,
    workers: int = 0,
    executor: str = LOCAL,
) -> dict[str, object]:
    """Write the next version of blocks, with the same files as `chunk` of the new corpus, and return the metrics.

    Args:
        blocks: the former version.
        settings: how it was read and cut.
        corpus: the files of the whole corpus as it is now, if `edits` is None.
        edits: the documents to add, update or remove.
        out: the folder to write to.
        workers: processes; 0 means one for each core.
        executor: where the workers run.

    Raises:
        InputError: a file is malformed, or no block is left.
    """
    out.copy_folder("tokenizer", tokenizer_folder(blocks))
    former, tokenizer = Corpus(blocks), out.path / "tokenizer"
    changes, pages = DocumentChanges(former), PageCounts()
    edited, before = set[str](), KeptEdits.of(blocks)
    if edits is None:
        told_of_loss(blocks)
        chunked = map_chunks(units(documents(corpus, settings, pages)), tokenizer, settings, workers, executor)
    else:
        revised, chunked = _edited(former, edits, tokenizer, settings)
        edited = {name for name, document in revised.items() if document} | changes.former_documents - revised.keys()
    digests = DocumentDigests({*edited, *(before.documents if before else ())})

    def add(block: Block) -> None:
        changes.add(block)
        digests.add(block)

    counts = write_blocks(chunked, out, Tokenizer.load(tokenizer), "revise", pages, add)
    pages.tell()
    if not changes.blocks:
        raise InputError(f"This revision of {blocks} would leave no block. Keep at least one document with text.")
    return {
        **changes.metrics(),
        **size_metrics(out.path),
        **({} if edits is None else still_edited(blocks, edited, digests.found()).metric()),
        "quarantined": counts["quarantined"],
        "language": settings.language,
    }


def _edited(
    former: Corpus, edits: Path, tokenizer: Path, settings: ChunkSettings
) -> tuple[dict[str, Document | None], Iterator[ChunkedUnit]]:
    """Return the documents as `apply_edits` does, and the units: blocks of documents without an edit are copied, the others are chunked."""
    titles, rows, with_lines = dict[str, str](), dict[str, range](), set[str]()
    for row, block in enumerate(former):
        if "\n" in block.text:
            with_lines.add(block.document)
        titles.setdefault(block.document, block.title)
        rows[block.document] = range(rows[block.document].start if block.document in rows else row, row + 1)
    revised = apply_edits(titles, read_edits(edits))
    return revised, _units(former, revised, rows, with_lines, tokenizer, settings)


def _units(
    former: Corpus,
    revised: Mapping[str, Document | None],
    rows: Mapping[str, range],
    with_lines: Container[str],
    tokenizer: Path,
    settings: ChunkSettings,
) -> Iterator[ChunkedUnit]:
    still = list(_quarantined(former.artifact, without=revised))
    yield ChunkedUnit(quarantined=still, counts=Counter(quarantined=len(still)))
    prepare(tokenizer, settings)
    for name, document in revised.items():
        if document is None:
            yield ChunkedUnit([former.block(row) for row in rows[name]], counts=Counter(documents=1))
            continue
        own = [former.block(row) for row in rows.get(name, ())]
        fields = own[0].fields if own and document.fields is NOTHING else document.fields
        unit = chunk_unit([replace(document, has_lines=name in with_lines, fields=fields)])
        unit.blocks[:] = _placed(unit.blocks, own)
        if not unit.blocks:
            warn(f"{document.where}: document {document.id!r} has no text to keep, and so no block.")
        yield unit


def _placed(blocks: Sequence[Block], former: Sequence[Block]) -> Iterator[Block]:
    """Yield blocks of an edited text with the sections and pages of its former blocks: those of their sentences. A new sentence stands where that before it does."""
    known: dict[str, tuple[list[str], int]] = {}
    for block in former:
        parts = block.section.split(BETWEEN) if block.section else []
        for start, end in block.sentences:
            others, page = known.get(block.text[start:end], (parts, block.page))
            known[block.text[start:end]] = _shared([others, parts]), page
    last = next(iter(known.values()), ([], 0))
    for block in blocks:
        places = [last := known.get(block.text[start:end], last) for start, end in block.sentences]
        section = BETWEEN.join(_shared([parts for parts, _ in places]))
        yield replace(block, section=section, page=places[0][1] if places else 0)


def _shared(paths: Sequence[list[str]]) -> list[str]:
    """Return what all paths begin with."""
    return [each[0] for each in takewhile(lambda each: len({*each}) == 1, zip(*paths, strict=False))]


def _quarantined(blocks: Artifact, without: Container[str]) -> Iterator[SkippedPage]:
    for record in Records(blocks.file("quarantine.jsonl.zst")):
        if record["id"] not in without:
            yield SkippedPage(**record)


class DocumentChanges:
    """Counts what happened to the documents of `former`, while the blocks of its next version are added.

    Two documents are equal if their id, title, texts, wordpieces and fields are.
    """

    def __init__(self, former: Corpus) -> None:
        self._former: dict[str, hashlib.blake2b] = {}
        self._revised: dict[str, hashlib.blake2b] = {}
        self._uids = set(former.uid.tolist())
        self.blocks = self._kept = 0
        for row, block in enumerate(former):
            _update(self._former, block, int(former.uid[row]))

    @property
    def former_documents(self) -> set[str]:
        """The ids of the former documents."""
        return set(self._former)

    def add(self, block: Block) -> None:
        """Count a block of the next version. The blocks of a document come in order."""
        uid = block.uid
        self.blocks += 1
        self._kept += uid in self._uids
        _update(self._revised, block, uid)

    def metrics(self) -> dict[str, int]:
        """Numbers of blocks and documents. `blocks_kept`: blocks whose title and text the former version has too."""
        both = self._former.keys() & self._revised.keys()
        changed = sum(self._former[name].digest() != self._revised[name].digest() for name in both)
        return {
            "blocks": self.blocks,
            "blocks_kept": self._kept,
            "documents": len(self._revised),
            "documents_added": len(self._revised) - len(both),
            "documents_changed": changed,
            "documents_removed": len(self._former) - len(both),
        }


def _update(digests: dict[str, hashlib.blake2b], block: Block, uid: int) -> None:
    digest = digests.setdefault(block.document, hashlib.blake2b(digest_size=16))
    parts = uid.to_bytes(8, "little"), block.wordpieces.title, block.wordpieces.body
    for part in (*parts, repr(sorted(block.fields.items())).encode()) if block.fields else parts:
        digest.update(len(part).to_bytes(8, "little") + part)
