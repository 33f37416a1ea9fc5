"""Open a search of a workspace: the newest retriever, index and blocks that fit each other, or blocks alone for BM25."""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts import Artifact, open_artifact, version_numbers
from realmctl.artifacts.manifest import is_artifact
from realmctl.errors import InputError
from realmctl.log import say
from realmctl.pipeline.choosing import fitting
from realmctl.pipeline.fields import check_precision
from realmctl.retrieval.blocks import ArtifactLike
from realmctl.retrieval.names import Bm25Tokens, Fusion
from realmctl.retrieval.search.block_search import SearchInputs
from realmctl.retrieval.search.methods import start_method, uses_index
from realmctl.retrieval.search.profile import SearchProfile
from realmctl.retrieval.search.reranking import Reranking
from realmctl.retrieval.search.text_search import TextSearch


def load_search(
    workspace: Path | str = "artifacts",
    *,
    method: str | None = None,
    blocks: ArtifactLike | None = None,
    retriever: ArtifactLike | None = None,
    index: ArtifactLike | None = None,
    bm25_weight: float | None = None,
    fusion: Fusion | None = None,
    bm25_stemmer: str | None = None,
    bm25_tokens: Bm25Tokens | None = None,
    rerank: Path | str | None = None,
    rerank_depth: int | None = None,
    rerank_fused: bool = False,
    device: str = "auto",
    precision: str = "auto",
) -> TextSearch:
    """Open a search over the blocks of a workspace.

    Args:
        workspace: folder of the artifacts that are not named.
        method: dense (retriever and index), bm25 (blocks alone), hybrid (both, fused), or the searcher
            of a plug-in. By default hybrid where there is an index, dense for more than 500,000 blocks, and bm25 without an index.
        blocks, retriever, index: artifacts; by default the newest blocks of the workspace that have an index, with the newest
            retriever that has one of them. A model or a qa-model stands for its retriever and its index.
        bm25_weight: factor of BM25's part in hybrid search; by default that of the workspace, or 1.
        fusion: what hybrid search sums up: scores, each list's from 1 to 0, which is the default, or ranks (reciprocal rank fusion).
        bm25_stemmer: Snowball stemmer, such as english, with which BM25 compares stems of words. By default that of the blocks' language.
        bm25_tokens: what BM25 compares without a stemmer: the wordpieces of the model (pieces) or whole words.
        rerank: what reads the first hits again and sorts them: a cross-encoder (a folder, an artifact or a hub id), a model or a qa-model.
        rerank_depth: hits of a question that are reranked; by default 50.
        rerank_fused: whether their new order is fused with that of the search, by ranks.
        device: auto (the first GPU, else the CPU), cpu or cuda:N.
        precision: arithmetic of the query encoder: fp32, bf16, or auto for bf16 where it is faster.

    Returns:
        The search. Its `profile` says how it searches.

    Raises:
        ConfigError: there is no such method, or it does not obey one of the options.
        InputError: there are no blocks, or an artifact is damaged.
        MismatchError: no index belongs to the retriever and the blocks.
        ResourceError: a package is needed, such as PyStemmer, and not installed.

    Examples:
        >>> search = realmctl.load_search("artifacts", method="hybrid")
        >>> for hit in search.search("Who wrote it?", k=5):
        ...     print(hit.score, hit.block.title, hit.block.text)
    """
    check_precision(precision)
    folder = Path(workspace)
    if blocks is None:
        require_blocks(folder / "blocks")
    named = {"index": index, "retriever": retriever}
    has_index = bool(any(named.values()) or version_numbers(folder / "index"))
    if uses_index(method) if method else has_index:
        if retriever is None and index is not None and "retriever" in _opened(index).manifest.parts:
            named["retriever"] = index
        elif index is None and retriever is not None and "index" in _opened(retriever).manifest.parts:
            named["index"] = retriever
        elif index is None and not version_numbers(folder / "index"):
            raise InputError(
                f"{folder / 'index'} has no finished version. Wait for `realmctl index-docs`, or run `realmctl embed` and `realmctl build-index`, or search "
                "by the method bm25, which needs none."
            )
    else:
        for name in [name for name, given in named.items() if given is not None]:
            say(f"search: the method {method} does not use the {name}, so it is ignored")
        named = {}
    asked = {name: given or folder / name for name, given in named.items()}
    chosen = fitting(
        blocks or folder / "blocks", retriever=asked.get("retriever"), index=asked.get("index"), blocks_first=True
    )
    of_blocks = chosen["blocks"]
    assert of_blocks is not None
    profile = SearchProfile.of(
        of_blocks,
        method,
        has_index=has_index,
        retriever=chosen.get("retriever"),
        bm25_stemmer=bm25_stemmer,
        bm25_tokens=bm25_tokens,
        bm25_weight=bm25_weight,
        fusion=fusion,
    )
    inputs = SearchInputs(
        blocks=of_blocks,
        retriever=chosen.get("retriever"),
        index=chosen.get("index"),
        device=device,
        precision=precision,
        few=True,
    )
    say(f"search: {profile.method} over {' and '.join(str(one.path) for one in (inputs.index, of_blocks) if one)}")
    found, reranking = start_method(profile, inputs), Reranking.of(rerank, rerank_depth, device, rerank_fused)
    search = TextSearch(found, found.corpus, profile.reranked(reranking))
    search.reranking = reranking
    return search


def require_blocks(series: Path) -> None:
    """Raise InputError unless there are blocks to search."""
    if not version_numbers(series) and not is_artifact(series):
        raise InputError(
            f"{series} has no finished version (looked from {Path.cwd()}). Run `realmctl index-docs` or `realmctl chunk` first, or name "
            "another workspace."
        )


def _opened(artifact: ArtifactLike) -> Artifact:
    return artifact if isinstance(artifact, Artifact) else open_artifact(artifact)
