"""The way in from Python: `realmctl.load` opens an artifact for use by its kind, and `load_...` one of a known kind.

A type checker knows what each `load_...` returns.
"""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts import Artifact, open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.pipeline import resolve
from realmctl.pipeline.fields import check_precision
from realmctl.retrieval.answering.pretrained_model import PretrainedModel
from realmctl.retrieval.answering.qa_model import QaModel
from realmctl.retrieval.blocks import ArtifactLike, BlocksLike
from realmctl.retrieval.loaded_index import LoadedIndex
from realmctl.retrieval.loaded_retriever import LoadedRetriever
from realmctl.retrieval.search.opening import load_search as load_search

Loaded = Corpus | LoadedIndex | LoadedRetriever | PretrainedModel | QaModel

load_index = LoadedIndex.open
load_retriever = LoadedRetriever.open
load_model = PretrainedModel.open
load_qa_model = QaModel.open


def load_blocks(path: Path | str | Artifact) -> Corpus:
    """Open a blocks artifact: a series, a version or an open artifact.

    Raises InputError when there is none or it is damaged, and MismatchError for another kind.
    """
    return Corpus(resolve(path, ("blocks",)))


def load(
    path: ArtifactLike,
    *,
    blocks: BlocksLike | None = None,
    index: ArtifactLike | None = None,
    device: str = "auto",
    precision: str = "auto",
) -> Loaded:
    """Open an artifact for use.

    | kind | as by | class | what it does |
    |---|---|---|---|
    | blocks | `load_blocks` | `Corpus` | texts by row |
    | retriever | `load_retriever` | `LoadedRetriever` | texts into vectors |
    | embeddings, index | `load_index` | `LoadedIndex` | vectors into rows |
    | model | `load_model` | `PretrainedModel` | `search`, `fill_mask` |
    | qa-model | `load_qa_model` | `QaModel` | `ask`, `answer`, `search` |

    Args:
        path: a series, a version, or an open artifact, such as a stage's `make` returns. Of a series the pinned version is
            taken, or else the newest that fits the blocks and the index.
        blocks: the blocks of a model or qa-model; by default the series `blocks` beside its own.
        index: the index that a model or qa-model searches; by default its own, or, for newer blocks, the newest of the series
            `index` beside the blocks.
        device: auto (the first GPU, else the CPU), cpu or cuda:N.
        precision: arithmetic of the encoders and the reader: fp32, bf16, or auto for bf16 where it is faster.

    Returns:
        What the table says for the artifact's kind.

    Raises:
        ConfigError: the kind is not in the table, or `blocks` or `index` is passed for a kind that needs none.
        InputError: there is no artifact, it is damaged, or its blocks are not found.
        MismatchError: model, index and blocks do not fit each other.
    """
    check_precision(precision)
    artifact = path if isinstance(path, Artifact) else open_artifact(path)
    if artifact.kind == "model":
        return PretrainedModel.open(path, blocks=blocks, index=index, device=device, precision=precision)
    if artifact.kind == "qa-model":
        return QaModel.open(path, blocks=blocks, index=index, device=device, precision=precision)
    for name, value in (("blocks", blocks), ("index", index)):
        if value is not None:
            raise ConfigError(f"{artifact} is opened without {name}. Leave out {name}=.")
    match artifact.kind:
        case "blocks":
            return load_blocks(artifact)
        case "retriever":
            return LoadedRetriever.open(artifact, device=device, precision=precision)
        case "embeddings" | "index":
            return LoadedIndex.open(artifact, device=device)
    raise ConfigError(
        f"{artifact} cannot be loaded for use; blocks, retriever, embeddings, index, model and qa-model can. To read its "
        "files and numbers, use realmctl.open_artifact(path)."
    )
