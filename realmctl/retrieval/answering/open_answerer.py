"""Opening a qa-model: it knows itself whether it reads dense, BM25's or no blocks."""

from __future__ import annotations

from collections.abc import Callable

from realmctl.artifacts import Artifact
from realmctl.retrieval.answering.answerer import Answerer
from realmctl.retrieval.answering.closed_book import ClosedBookAnswerer
from realmctl.retrieval.answering.extractive import ExtractiveAnswerer
from realmctl.retrieval.search.bm25 import BM25Searcher
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.retrieval.search.searcher import Searcher

SEARCHERS: dict[str, Callable[[Artifact, Artifact, str, str], Searcher]] = {
    "dense": lambda made, blocks, device, precision: DenseSearcher(
        made.part("retriever"), made.part("index"), blocks, device, precision
    ),
    "bm25": lambda made, blocks, device, precision: BM25Searcher(blocks, device, made.part("bm25")),
}


def open_answerer(
    qa_model: Artifact,
    blocks: Artifact,
    *,
    reader_beam: int | None = None,
    device: str = "auto",
    precision: str = "auto",
    spaced_words: bool = False,
) -> Answerer:
    """A qa-model with its blocks. `reader_beam`: blocks that are read, by default as in fine-tuning.

    `spaced_words`: one space between the words of an answer that is read, as the official code writes it.

    Raises MismatchError for blocks that are not its own, ResourceError where BM25 is needed and bm25s is not installed.
    """
    retrieval = str(qa_model.settings.get("retrieval", "dense"))
    if retrieval == "none":
        return ClosedBookAnswerer(qa_model, blocks, device, precision)
    searcher = SEARCHERS[retrieval](qa_model, blocks, device, precision)
    return ExtractiveAnswerer(qa_model, searcher, reader_beam, precision, spaced_words)
