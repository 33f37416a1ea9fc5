"""Opening a qa-model: its `qa-model.json` names its answerer and its searcher."""

from __future__ import annotations

from realmctl.artifacts import Artifact
from realmctl.artifacts.description import describe_qa_model
from realmctl.errors import ConfigError, MismatchError
from realmctl.retrieval.answering.answerer import Answerer, AnsweringOptions
from realmctl.retrieval.answering.registry import ANSWERERS
from realmctl.retrieval.search.searcher import searcher_type


def open_answerer(
    qa_model: Artifact,
    blocks: Artifact,
    *,
    reader_beam: int | None = None,
    device: str = "auto",
    precision: str = "auto",
    official_text: bool = False,
    index: Artifact | None = None,
) -> Answerer:
    """Open a qa-model with its blocks.

    Args:
        qa_model: the fine-tuned model.
        blocks: the blocks that it was fine-tuned with, or those of `index`.
        reader_beam: blocks read per question; None for as many as in fine-tuning.
        device: auto, cpu or cuda:N.
        precision: auto, fp32 or bf16.
        official_text: return the text of an answer as the official code does, whole words joined with spaces.
        index: index to search instead of the qa-model's own, such as one of revised blocks.

    Raises:
        MismatchError: an artifact is of another kind, or the blocks are not those of the qa-model.
        ConfigError: its answerer or searcher is unknown here, or it does not use an index and one is passed.
        ResourceError: the package of its answerer or searcher cannot be imported.
    """
    if qa_model.kind != "qa-model":
        raise MismatchError(
            f"{qa_model} is of kind {qa_model.kind}, but a qa-model is needed. Run `realmctl finetune` first, or name another "
            "artifact."
        )
    if blocks.kind != "blocks":
        raise MismatchError(f"{blocks} is of kind {blocks.kind}, but blocks are needed. Name another artifact.")
    options = AnsweringOptions(
        reader_beam=reader_beam, device=device, precision=precision, official_text=official_text, index=index
    )
    described = describe_qa_model(qa_model)
    if index is not None and (described.searcher is None or not searcher_type(described.searcher).uses_index):
        raise ConfigError(f"{qa_model} searches no index of vectors. Leave out --index.")
    return ANSWERERS.load(described.answerer, Answerer).open(qa_model, blocks, options)
