"""`realmctl.load`: an artifact, opened for use by its kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from realmctl.artifacts import Artifact, open_artifact
from realmctl.errors import ConfigError

if TYPE_CHECKING:
    from realmctl.api.blocks import BlocksLike


def load(
    path: Path | str | Artifact, *, blocks: BlocksLike | None = None, device: str = "auto", precision: str = "auto"
) -> Any:
    """Open an artifact for use.

    The class of the result depends on the artifact's kind. In code that is type-checked, use the typed `open` of a
    class, such as `LoadedQaModel.open(path)` in `realmctl.api.qa_model`.

    Args:
        path: a series (its newest version), a version, or an open artifact, such as a stage's `make` returns.
        blocks: the blocks of a model or qa-model; by default the version that it was made from, in the series `blocks`
            beside its own.
        device: auto (the first GPU, else the CPU), cpu or cuda:N.
        precision: arithmetic of the encoders and the reader: fp32, bf16, or auto for bf16 where the hardware has it.

    Returns:
        | kind | class | what it does |
        |---|---|---|
        | blocks | `LoadedBlocks` | texts by row |
        | retriever | `LoadedRetriever` | texts into vectors |
        | embeddings, index | `LoadedIndex` | vectors into rows |
        | model | `LoadedModel` | `search`, `fill_mask` |
        | qa-model | `LoadedQaModel` | `answer`, `search` |

    Raises:
        ConfigError: the kind is not in the table, or `blocks` is passed for a kind that needs none.
        InputError: there is no artifact, it is damaged, or its blocks are not found.
        MismatchError: the blocks are not those it was made from.

    Examples:
        >>> qa = realmctl.load("artifacts/qa-model")
        >>> qa.answer("Who wrote it?").best.text
    """
    artifact = path if isinstance(path, Artifact) else open_artifact(path)
    if artifact.kind in ("model", "qa-model"):
        return _load_model(artifact, blocks, device, precision)
    if blocks is not None:
        raise ConfigError(f"{artifact} is opened without blocks. Leave out blocks=.")
    return _load_part(artifact, device, precision)


def _load_model(artifact: Artifact, blocks: BlocksLike | None, device: str, precision: str) -> Any:
    from realmctl.api.model import LoadedModel
    from realmctl.api.qa_model import LoadedQaModel

    opened = LoadedModel if artifact.kind == "model" else LoadedQaModel
    return opened.open(artifact, blocks=blocks, device=device, precision=precision)


def _load_part(artifact: Artifact, device: str, precision: str) -> Any:
    from realmctl.api.blocks import LoadedBlocks
    from realmctl.api.index import LoadedIndex
    from realmctl.api.retriever import LoadedRetriever

    match artifact.kind:
        case "blocks":
            return LoadedBlocks.open(artifact)
        case "retriever":
            return LoadedRetriever.open(artifact, device=device, precision=precision)
        case "embeddings" | "index":
            return LoadedIndex.open(artifact, device=device)
    raise ConfigError(
        f"{artifact} cannot be loaded for use; blocks, retriever, embeddings, index, model and qa-model can. To read its "
        "files and numbers, use realmctl.open_artifact(path)."
    )
