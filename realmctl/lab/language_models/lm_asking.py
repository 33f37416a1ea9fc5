"""A question to a language model that reads what the workspace's search finds."""

from __future__ import annotations

from pathlib import Path

from realmctl.errors import ConfigError
from realmctl.lab.language_models.reading_model import ReadingModel, ReadingOptions
from realmctl.log import warn
from realmctl.pipeline.sources import localise
from realmctl.retrieval.answering.qa_model import AnsweredQuestion
from realmctl.retrieval.search.opening import load_search


def ask_language_model(
    question: str,
    reader_lm: str,
    workspace: Path,
    top: int,
    options: ReadingOptions,
    *,
    blocks: Path | None = None,
    index: Path | None = None,
    rerank: str | None = None,
    rerank_depth: int | None = None,
    rerank_fused: bool = False,
) -> AnsweredQuestion:
    """The `top` best answers of a language model that reads the blocks that the workspace's search finds, each with its evidence.

    Args:
        question: the question.
        reader_lm: the language model: a folder or a hub id.
        workspace: folder of the index, retriever and blocks that are not named; without an index BM25 searches.
        top: the number of answers.
        options: how it reads.
        blocks: the blocks.
        index: the index, or the model that holds it.
        rerank, rerank_depth, rerank_fused: what chooses the blocks that are read, among so many; see `Reranking.of`.

    Raises:
        ConfigError: the question is empty, or a prompt or a length does not suit the model.
        InputError: there are no blocks, or no language model that can be used.
    """
    if not question.strip():
        raise ConfigError('ask needs a question, such as realmctl ask "Who wrote it?".')
    folder = Path(localise(reader_lm, (), True, "--reader-lm"))
    search = load_search(
        workspace, blocks=blocks, index=index, rerank=rerank, rerank_depth=rerank_depth, rerank_fused=rerank_fused
    )
    model = ReadingModel.open(folder, search, options)
    answered = model.ask(question, top)
    cut, read = model.reader.cut_share()
    if cut:
        warn(
            f"{cut} of {read} blocks did not fit into the {model.reader.room} tokens of an input and were cut at their end"
        )
    return answered
