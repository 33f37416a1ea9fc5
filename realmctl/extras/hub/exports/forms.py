"""The forms in which `realmctl export` writes blocks, embeddings, rankings, scores, negatives and cross-encoders for other tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from realmctl.artifacts import Artifact, require_descent, verify
from realmctl.artifacts.disk import copy_file
from realmctl.errors import ConfigError
from realmctl.extras.hub.exports import dpr, table, triplets, vectors
from realmctl.extras.hub.exports.new_path import new_path

FormName = Literal[
    "psgs", "vectors", "parquet", "tevatron", "trec", "dpr-reader", "dpr-retriever", "triplets", "cross-encoder"
]
Summary = Mapping[str, int | list[str]]
"""Counts, and the programs that load the file, by what they are."""


@dataclass(frozen=True)
class Form:
    """A form: the kind of artifact that it is made of, and the function that writes it."""

    kind: str
    write: Callable[[Artifact, Artifact | None, Path], Summary]
    needs_blocks: bool = False


def _write_run(ranking: Artifact, path: Path) -> Summary:
    """Copy the TREC run of a ranking, for trec_eval, Pyserini, ranx and other tools."""
    copy_file(ranking.file("run.trec"), path)
    return {"loads_in": ["trec_eval"]}


def _write_cross_encoder(cross_encoder: Artifact, path: Path) -> Summary:
    """Copy the model and its tokenizer into a folder, without what realmctl wrote beside them."""
    path.mkdir()
    for name in cross_encoder.manifest.files:
        if name not in OF_TRAINING:
            copy_file(cross_encoder.file(name), path / name)
    return {"loads_in": ["sentence-transformers", "transformers"]}


OF_TRAINING = ("metrics.jsonl",)
FORMS: Mapping[FormName, Form] = {
    "psgs": Form("blocks", lambda blocks, _, path: dpr.write_passages(blocks, path)),
    "vectors": Form("embeddings", vectors.write_vectors, needs_blocks=True),
    "parquet": Form("embeddings", table.write_table, needs_blocks=True),
    "tevatron": Form("embeddings", vectors.write_tevatron, needs_blocks=True),
    "trec": Form("ranking", lambda ranking, _, path: _write_run(ranking, path)),
    "dpr-reader": Form("scores", lambda scores, _, path: dpr.write_reader_training(scores, path)),
    "dpr-retriever": Form("scores", lambda scores, _, path: dpr.write_retriever_training(scores, path)),
    "triplets": Form("negatives", lambda negatives, _, path: triplets.write_triplets(negatives, path)),
    "cross-encoder": Form("cross-encoder", lambda model, _, path: _write_cross_encoder(model, path)),
}
"""The first form of a kind is its default."""


def default_form(kind: str) -> FormName | None:
    """Return the form in which artifacts of a kind are written; None for models, which `hub_export` writes."""
    return next((name for name, form in FORMS.items() if form.kind == kind), None)


def export_form(
    artifact: Artifact, path: Path, name: FormName, blocks: Artifact | None
) -> dict[str, str | int | list[str]]:
    """Write an artifact in a form to the new file or folder `path`. Return a summary.

    Args:
        artifact: blocks, embeddings, a ranking, scores, negatives or a cross-encoder.
        path: file or folder to write.
        name: the form.
        blocks: for embeddings, the blocks that they embed. Their ids are written.

    Raises:
        ConfigError: the form is of another kind, `path` exists, or the blocks are missing or not needed.
        MismatchError: the embeddings are not of these blocks.
        InputError: the artifact is damaged, or does not hold what the form needs.
    """
    form = FORMS[name]
    if form.kind != artifact.kind:
        fitting = [each for each, other in FORMS.items() if other.kind == artifact.kind]
        advice = f"Use {' or '.join(fitting)}." if fitting else "Leave --form out."
        raise ConfigError(
            f"--form {name}: this form is made of {form.kind}, and {artifact} is {artifact.kind}. {advice}"
        )
    if form.needs_blocks != (blocks is not None):
        why = "needs --blocks, whose ids are written" if form.needs_blocks else "takes no --blocks"
        raise ConfigError(f"export of {artifact.kind} {why}.")
    if blocks is not None:
        require_descent(artifact, blocks)
        verify(blocks)
    verify(artifact)
    with new_path(path) as partial:
        summary = form.write(artifact, blocks, partial)
    return {"path": str(path), "from": str(artifact.path), "kind": artifact.kind, "form": name, **summary}
