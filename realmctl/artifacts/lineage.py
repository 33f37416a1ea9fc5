"""Checks that artifacts belong together: by descent, by vocabulary, by titles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from realmctl.artifacts.artifact import Artifact
from realmctl.artifacts.description import has_titles
from realmctl.artifacts.manifest import FORMER
from realmctl.errors import InputError, MismatchError, as_realmctl_error

TOKENIZER = "tokenizer.json"


def lineage_of(inputs: Mapping[str, Artifact]) -> dict[str, str]:
    """{kind: content} of the inputs and of their ancestors, without the former ones. An input replaces an ancestor of its kind."""
    needed = [artifact for name, artifact in inputs.items() if not name.startswith(FORMER)]
    lineage: dict[str, str] = {}
    for artifact in needed:
        lineage.update(artifact.lineage)
    lineage.update({artifact.kind: artifact.content for artifact in needed})
    return lineage


def require_descent(artifact: Artifact, *ancestors: Artifact) -> None:
    """Raise MismatchError unless `artifact` descends from each of `ancestors`."""
    for ancestor in ancestors:
        known = artifact.lineage.get(ancestor.kind)
        if known != ancestor.content:
            raise MismatchError(
                f"{artifact} does not belong to {ancestor}: it descends from {ancestor.kind} "
                f"{str(known)[:12]}, not from the content {ancestor.content[:12]}. Name the {ancestor.kind} that "
                "it was made from, or make it again from the one that you named."
            )


def require_same_vocabulary(first: Artifact, *others: Artifact) -> None:
    """Raise MismatchError unless all artifacts have the same tokenizer: its vocabulary, and what it does with a text."""
    for other in others:
        if not _same_tokenizer(first, other):
            raise MismatchError(
                f"{other} and {first} have different vocabularies, or tokenizers with different settings, so their token ids do not mean "
                "the same. Make both with one tokenizer (`realmctl chunk --tokenizer`)."
            )


def tokenizer_folder(artifact: Artifact) -> Path:
    """Return the folder with an artifact's tokenizer files."""
    return artifact.path / "tokenizer" if artifact.has("tokenizer/tokenizer.json") else artifact.path


def require_titles(blocks: Artifact) -> None:
    """Raise MismatchError for blocks that were imported without titles. A block is embedded together with its title."""
    if not has_titles(blocks):
        raise MismatchError(
            f"{blocks} was imported without titles, and a block is embedded together with its title: embeddings made "
            "now would differ from those of its index. Import it again with --titles, or use the index it came with."
        )


def vocabulary_of(artifact: Artifact) -> str | None:
    """Return the SHA-256 of an artifact's vocabulary, or of that of a part; None if it has none.

    It is that of vocab.txt, or of tokenizer.json where the tokenizer is not Tokenizer.
    """
    for name in (f"{below}{file}" for file in ("vocab.txt", TOKENIZER) for below in ("tokenizer/", "")):
        if name in artifact.manifest.files:
            return artifact.manifest.files[name].sha256
    return next((words for part in artifact.parts() if (words := vocabulary_of(part))), None)


def _same_tokenizer(first: Artifact, other: Artifact) -> bool:
    """Whether two artifacts have equal tokenizer.json, or equal parts of it that decide the ids of a text."""
    files = [f"{tokenizer_folder(artifact).relative_to(artifact.path) / TOKENIZER}" for artifact in (first, other)]
    for artifact, name in zip((first, other), files, strict=True):
        if name not in artifact.manifest.files:
            raise InputError(
                f"{artifact} holds no {TOKENIZER}, so the meaning of its token ids is unknown. Make it again."
            )
    hashes = {artifact.manifest.files[name].sha256 for artifact, name in zip((first, other), files, strict=True)}
    return len(hashes) == 1 or _deciding_parts(first.file(files[0])) == _deciding_parts(other.file(files[1]))


def _deciding_parts(path: Path) -> list[object]:
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
        added = [(token["id"], token["content"]) for token in described.get("added_tokens", ()) if not token["special"]]
        return [described.get("normalizer"), described.get("pre_tokenizer"), described["model"], added]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"{path} does not describe a tokenizer ({type(error).__name__}: {error}). Restore the file or make the artifact again."
        ) from None
