"""The models of a server, in memory once, over one version of the blocks at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from realmctl.artifacts import Artifact, open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, MismatchError
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index
from realmctl.models.reader import Reader
from realmctl.retrieval.answering.answerer import Answerer
from realmctl.retrieval.answering.extractive import ExtractiveAnswerer
from realmctl.retrieval.answering.open_answerer import open_answerer
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.retrieval.search.searcher import Searcher
from realmctl.serve.versions import Places, ServedVersion


@dataclass(frozen=True)
class Filler:
    """A pre-trained model: its retriever over the index, and its reader."""

    searcher: DenseSearcher
    reader: Reader


@dataclass(frozen=True)
class Models:
    """What answers: a qa-model, a pre-trained model, and a closed-book model, each optional, over one version of blocks.

    row_of: the row of each block by its id.
    """

    version: ServedVersion
    corpus: Corpus
    row_of: Mapping[str, int]
    answerer: Answerer | None
    filler: Filler | None
    closed_book: Answerer | None

    def over(self, version: ServedVersion) -> Models:
        """Return the same models over another version. Only its index is read, and BM25 is computed anew."""
        opened, answerer, filler = open_once(), self.answerer, self.filler
        if isinstance(answerer, ExtractiveAnswerer):
            answerer = answerer.with_searcher(answerer.searcher.over(version.blocks, version.index, opened))
        if filler is not None:
            searcher = filler.searcher.over(version.blocks, version.index, opened)
            filler = dataclasses.replace(filler, searcher=searcher)
        corpus = Corpus(version.blocks)
        return dataclasses.replace(
            self, version=version, corpus=corpus, row_of=rows_by_id(corpus), answerer=answerer, filler=filler
        )

    def check_edits(self) -> None:
        """Raise ConfigError if the models cannot follow an edit of the blocks."""
        searcher = None if self.answerer is None else self.answerer.searcher
        if searcher is None:
            return
        if not isinstance(self.answerer, ExtractiveAnswerer) or type(searcher).over is Searcher.over:
            raise ConfigError("This qa-model cannot search edited blocks. Leave out --allow-edits.")

    def rows_of_document(self, row: int) -> range:
        """Rows of the document that a block belongs to. The blocks of a document are consecutive."""
        document, first, stop = self.corpus.block(row).document, row, row + 1
        while first > 0 and self.corpus.block(first - 1).document == document:
            first -= 1
        while stop < len(self.corpus) and self.corpus.block(stop).document == document:
            stop += 1
        return range(first, stop)


def open_models(
    qa_model: Path | None, model: Path | None, closed_book: Path | None, blocks: Path, indexes: Path
) -> tuple[Models, Places]:
    """Open the models over the newest version of the blocks that has an index.

    Args:
        qa_model: a fine-tuned model, which answers questions.
        model: a pre-trained model, which fills masks and embeds edited blocks.
        closed_book: a qa-model that was fine-tuned with --retrieval none.
        blocks: a version of the blocks, or their series.
        indexes: the series of indexes.

    Raises:
        ConfigError: there is neither a qa-model nor a pre-trained model.
        InputError: something is missing or damaged.
        MismatchError: the models, the blocks and the index do not belong together.
    """
    asked, filled, closed = (None if path is None else open_artifact(path) for path in (qa_model, model, closed_book))
    if asked is None and filled is None:
        raise ConfigError(
            "serve needs a qa-model to answer questions, or a pre-trained model to fill masks, and found neither. Name one "
            "with --qa-model or --model."
        )
    own = next((one.part("index") for one in (asked, filled) if one and "index" in one.manifest["parts"]), None)
    places = Places(blocks, indexes, own)
    version, opened = places.newest(), open_once()
    answerer = filler = None
    if asked is not None:
        uses_index = "index" in asked.manifest["parts"]
        answerer = open_answerer(asked, version.blocks, index=version.index if uses_index else None)
        if isinstance(answerer.searcher, DenseSearcher):
            opened = open_once(answerer.searcher.index)
    if filled is not None:
        if filled.kind != "model" or version.index is None:
            raise MismatchError(f"{filled} is not a pre-trained model with an index. Name one with --model.")
        searcher = DenseSearcher(filled.part("retriever"), version.index, version.blocks, "auto", "auto", opened)
        filler = Filler(searcher, Reader.load(filled.part("reader").path).to(searcher.device))
    weights = None if closed is None else _closed_book(closed, version.blocks)
    corpus = Corpus(version.blocks)
    return Models(version, corpus, rows_by_id(corpus), answerer, filler, weights), places


def rows_by_id(corpus: Corpus) -> dict[str, int]:
    """Row of each block by its id. This reads all blocks."""
    return {block.id: row for row, block in enumerate(corpus)}


def open_once(index: Index | None = None) -> Callable[[Path, str], Index]:
    """Return an opener that opens an index at its first call, and returns the same one at the next."""
    held = [] if index is None else [index]

    def opener(path: Path, device: str) -> Index:
        if not held:
            held.append(open_index(path, device))
        return held[0]

    return opener


def _closed_book(artifact: Artifact, blocks: Artifact) -> Answerer:
    answerer = open_answerer(artifact, blocks)
    if answerer.searcher is not None:
        raise MismatchError(
            f"--closed-book {artifact.path} retrieves blocks. Name a qa-model that was fine-tuned with --retrieval none."
        )
    return answerer
