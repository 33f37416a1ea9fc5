"""Open a search of a workspace: the newest index with the retriever and the blocks that it was made from, or blocks alone for BM25."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from realmctl.artifacts import Artifact, newest_version, version_numbers
from realmctl.artifacts.series import readable_versions
from realmctl.errors import InputError, MismatchError, RealmctlError
from realmctl.log import say
from realmctl.pipeline import resolve
from realmctl.retrieval.search.dense import require_parts
from realmctl.retrieval.search.methods import start_method, uses_index
from realmctl.retrieval.search.searcher import SearchInputs
from realmctl.retrieval.search.text_search import TextSearch

DEPTH = 100
"""Blocks of each ranking that take part in hybrid search, however few are shown."""
ArtifactLike = Path | str | Artifact


def load_search(
    workspace: Path | str = "artifacts",
    *,
    method: str | None = None,
    blocks: ArtifactLike | None = None,
    retriever: ArtifactLike | None = None,
    index: ArtifactLike | None = None,
    bm25_weight: float = 1.0,
    device: str = "auto",
    precision: str = "auto",
) -> TextSearch:
    """Open a search over the blocks of a workspace.

    Args:
        workspace: folder of the artifacts that are not named.
        method: dense (retriever and index), bm25 (blocks alone, extra `bm25`), hybrid (both, fused by rank), or the searcher
            of a plug-in. By default dense where there is an index, else bm25.
        blocks: blocks; by default those of the index, and for bm25 the newest.
        retriever: retriever, or a model or qa-model with one; by default the one that made the index.
        index: index, or a model with one; by default the newest whose retriever and blocks are there.
        bm25_weight: factor of BM25's part in hybrid search.
        device: auto (the first GPU, else the CPU), cpu or cuda:N.
        precision: arithmetic of the query encoder: fp32, bf16, or auto for bf16 where the hardware has it.

    Raises:
        ConfigError: there is no such method.
        InputError: there are no blocks, or an artifact is damaged.
        MismatchError: no index belongs to the retriever and the blocks.
        ResourceError: bm25s is needed, and not installed.

    Examples:
        >>> search = realmctl.load_search("artifacts", method="hybrid")
        >>> for hit in search.search("Who wrote it?", k=5):
        ...     print(hit.score, hit.block.title, hit.block.text)
    """
    folder = Path(workspace)
    if blocks is None and index is None and not version_numbers(folder / "blocks"):
        raise InputError(
            f"{folder / 'blocks'} has no finished version (looked from {Path.cwd()}). Run `realmctl chunk` first: it makes blocks, "
            "or name another --workspace."
        )
    if method is None:
        named = index is not None or retriever is not None
        method = "dense" if named or version_numbers(folder / "index") else "bm25"
    if uses_index(method):
        inputs = _fitting(folder, blocks, retriever, index)
        inputs = dataclasses.replace(inputs, device=device, precision=precision)
    else:
        for name in [name for name, given in (("retriever", retriever), ("index", index)) if given is not None]:
            say(f"search: {method} does not use the {name}, so it is ignored")
        inputs = SearchInputs(blocks=resolve(blocks or folder / "blocks", ("blocks",)), device=device)
    say(f"search: {method} over {' and '.join(str(one.path) for one in (inputs.index, inputs.blocks) if one)}")
    found = start_method(method, inputs, depth=DEPTH, bm25_weight=bm25_weight)
    return TextSearch(found, found.corpus)


def _fitting(
    workspace: Path, blocks: ArtifactLike | None, retriever: ArtifactLike | None, index: ArtifactLike | None
) -> SearchInputs:
    """The newest index with its blocks and its retriever. What is named is taken as it is."""
    given = {"blocks": blocks, "retriever": retriever, "index": index}
    named = {kind: resolve(value, (kind,), f"--{kind}") for kind, value in given.items() if value is not None}
    reason: RealmctlError | None = None
    for one in [named["index"]] if "index" in named else readable_versions(workspace / "index"):
        try:
            its_blocks, its_retriever = (
                named.get(kind) or _ancestor(one, kind, workspace) for kind in ("blocks", "retriever")
            )
            require_parts(its_retriever, one, its_blocks)
        except MismatchError as error:
            reason = reason or error
            continue
        newest = newest_version(workspace / "blocks") if "blocks" not in named else its_blocks.path
        if newest.name != its_blocks.path.name:
            say(f"search: {newest} has no index that fits, so {its_blocks.path} is searched")
        return SearchInputs(blocks=its_blocks, retriever=its_retriever, index=one)
    raise reason or InputError(
        f"{workspace / 'index'} has no index. Run `realmctl embed` and `realmctl build-index`, or search with --method bm25."
    )


def _ancestor(index: Artifact, kind: str, workspace: Path) -> Artifact:
    """The version in the workspace that an index was made from. Raises MismatchError if it is not there."""
    content = index.lineage.get(kind)
    for version in readable_versions(workspace / kind):
        if version.content == content:
            return version
    raise MismatchError(
        f"{index.path} was made from {kind} {str(content)[:12]}, which {workspace / kind} does not hold. Name them with "
        f"--{kind}, or run `realmctl embed` and `realmctl build-index` again."
    )
