"""`realmctl export`: write an artifact as a folder that other libraries load.

The folder holds a BERT for transformers' AutoModel. For a retriever it is also a sentence-transformers model whose `encode`
gives our embeddings (sentence_modules.py). For an encoder of `condenser-init` the
folder also holds the head, with the tensor names of the public Condenser code, and encoder.json, which holds the pooling.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

from realmctl.artifacts import Artifact, open_artifact, verify
from realmctl.artifacts.description import CONDENSER_HEAD, ENCODER
from realmctl.errors import ConfigError
from realmctl.extras.hub.exports.model_card import NO_FACTS, CardFacts, write_card
from realmctl.extras.hub.exports.new_path import new_path
from realmctl.extras.hub.exports.sentence_modules import Projection, served_by, write_modules
from realmctl.models.retriever import Retriever
from realmctl.pipeline import resolve

TowerSide = Literal["query", "block"]
ExportedModel = TypedDict(
    "ExportedModel",
    {
        "path": str,
        "from": str,
        "kind": str,
        "side": TowerSide | None,
        "loads_in": list[str],
        "pushed_to": NotRequired[str],
        "served_by": NotRequired[list[str]],
        "int8_cosine": NotRequired[float],
    },
)
"""A summary of what was exported: `from` is the path of the artifact, `loads_in` names libraries, and `served_by` those servers that
give the vectors of a retriever. `int8_cosine` is the least cosine between the embeddings of both ONNX graphs."""


KINDS = ("retriever", "encoder", "reader", "span-reader")
BERT_FILES = ("config.json", "model.safetensors")
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json")


def export(
    path: Path,
    folder: Path,
    side: TowerSide | None = None,
    name: str | None = None,
    facts: CardFacts = NO_FACTS,
    projection: Projection = "exact",
    onnx: bool = False,
) -> ExportedModel:
    """Write the artifact at `path`, or a model's retriever, to the new folder `folder`. Return a summary.

    name: hub id that the model card names instead of the folder.
    facts: what the model card says beside.
    projection: how a retriever's modules are written, see `sentence_modules`.
    onnx: write a retriever as ONNX too, see `onnx_export`.

    Raises ConfigError for a folder that exists, and for a tower that the artifact does not have.
    """
    artifact = resolve(open_artifact(path), KINDS)
    verify(artifact)
    retriever = Retriever.load(artifact.path) if artifact.kind == "retriever" else None
    chosen = _side(retriever, side, artifact)
    with new_path(folder) as partial:
        partial.mkdir()
        if retriever is None and (projection != "exact" or onnx):
            raise ConfigError(f"--projection and --onnx are for retrievers, and {artifact} is of kind {artifact.kind}.")
        served, cosine = _write(artifact, retriever, chosen, partial, projection, onnx)
        write_card(artifact, partial, name or str(folder), chosen, facts)
    libraries = ["transformers", "sentence-transformers"] if retriever else ["transformers"]
    made: ExportedModel = {
        "path": str(folder),
        "from": str(artifact.path),
        "kind": artifact.kind,
        "side": chosen,
        "loads_in": libraries,
    }
    if served is not None:
        made["served_by"] = served
    if cosine is not None:
        made["int8_cosine"] = cosine
    return made


def _side(retriever: Retriever | None, side: TowerSide | None, artifact: Artifact) -> TowerSide | None:
    if retriever is None:
        if side:
            raise ConfigError(
                f"--side {side}: {artifact} is a single BERT and has no sides (query, block). Leave --side out."
            )
        return None
    if retriever.towers == "separate" and side is None:
        raise ConfigError(f"{artifact} has a query tower and a block tower. Say which: --side query or --side block.")
    if retriever.towers == "query-only" and side == "block":
        raise ConfigError(f"{artifact} was fine-tuned and has a query side alone (no block tower). Leave --side out.")
    return side or ("query" if retriever.towers == "query-only" else "block")


def _write(
    artifact: Artifact,
    retriever: Retriever | None,
    side: TowerSide | None,
    folder: Path,
    projection: Projection,
    onnx: bool,
) -> tuple[list[str] | None, float | None]:
    """Return the servers that give a retriever's vectors, and the least cosine of int8."""
    if retriever is None:
        of_condenser = [name for name in (CONDENSER_HEAD, ENCODER) if artifact.has(name)]
        _copy(artifact, [*BERT_FILES, *_tokenizer(artifact, ""), *of_condenser], "", folder)
        return None, None
    below = "query/" if side == "query" and retriever.towers != "shared" else "block/"
    _copy(artifact, list(BERT_FILES), below, folder)
    _copy(artifact, _tokenizer(artifact, "tokenizer/"), "tokenizer/", folder)
    tower = retriever.query_tower if side == "query" or retriever.block_tower is None else retriever.block_tower
    length = retriever.query_length if side == "query" and retriever.towers != "shared" else retriever.block_length
    served = served_by(write_modules(tower, length, retriever.layout, folder, projection))
    if not onnx:
        return served, None
    from realmctl.extras.hub.exports.onnx_export import write_onnx

    return served, write_onnx(tower, folder)


def _tokenizer(artifact: Artifact, below: str) -> list[str]:
    """Return the names of the files of a tokenizer; only WordPiece has a vocab.txt."""
    return [name for name in TOKENIZER_FILES if name != "vocab.txt" or artifact.has(below + name)]


def _copy(artifact: Artifact, names: list[str], below: str, folder: Path) -> None:
    for name in names:
        shutil.copyfile(artifact.file(below + name), folder / name)
