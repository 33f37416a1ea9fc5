"""A retriever as a model of MTEB (github.com/embeddings-benchmark/mteb; extra `mteb`): its `SearchProtocol`, of version 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from realmctl.errors import require_package
from realmctl.index.exact import ExactIndex
from realmctl.index.protocol import Vectors
from realmctl.retrieval.loaded_retriever import LoadedRetriever

DOCUMENTS_AT_ONCE = 4096


class MtebSearch:
    """Exact search with a retriever over the corpus of a task. A document is one block, whose end may be cut.

    Examples:
        >>> model = MtebSearch(realmctl.load_retriever("artifacts/retriever"))
        >>> mteb.evaluate(model, mteb.get_tasks(tasks=["SciFact"]))
    """

    def __init__(self, retriever: LoadedRetriever) -> None:
        """Raises ResourceError where mteb is not installed."""
        require_package("mteb", "mteb", "MtebSearch")
        self.retriever = retriever

    def index(self, corpus: Any, **_: Any) -> None:
        """Embed a corpus: a dataset of rows with `id`, `text` and perhaps `title`."""
        self._ids: list[str] = list(corpus["id"])
        vectors_ND: Vectors = np.empty((len(self._ids), self.retriever.dimension), np.float32)
        for start in range(0, len(self._ids), DOCUMENTS_AT_ONCE):
            part = corpus[start : start + DOCUMENTS_AT_ONCE]
            titles = [title or "" for title in part.get("title", [""] * len(part["text"]))]
            vectors_ND[start : start + len(titles)] = self.retriever.encode_blocks(titles, part["text"])
        self._index = ExactIndex(vectors_ND)

    def search(
        self, queries: Any, *, top_k: int, top_ranked: Mapping[str, Sequence[str]] | None = None, **_: Any
    ) -> dict[str, dict[str, float]]:
        """Return {query: {document: score}} of the best `top_k` documents, or of those that `top_ranked` names."""
        queries_BD = self.retriever.encode_queries(list(queries["text"]))
        if top_ranked is not None:
            rows = {name: row for row, name in enumerate(self._ids)}
            found: dict[str, dict[str, float]] = {}
            for query, query_D in zip(queries["id"], queries_BD, strict=True):
                names = [*top_ranked.get(query, ())]
                scores = self._index.vectors(np.array([rows[name] for name in names], np.int64)) @ query_D
                found[query] = dict(zip(names, scores.tolist(), strict=True))
            return found
        scores_BK, rows_BK = self._index.search(queries_BD, min(top_k, len(self._ids)))
        return {
            query: {self._ids[row]: score for row, score in zip(rows_K.tolist(), scores_K.tolist(), strict=True)}
            for query, rows_K, scores_K in zip(queries["id"], rows_BK, scores_BK, strict=True)
        }

    @property
    def mteb_model_meta(self) -> Any:
        """What MTEB writes into its results: the kind of model, and the artifact's hash as its revision."""
        from mteb.models.model_meta import ModelMeta

        artifact = self.retriever.artifact
        facts = {
            "name": f"realmctl/{artifact.path.parent.name}-{artifact.path.name}",
            "revision": artifact.content[:12],
        }
        return ModelMeta.create_empty({**facts, "embed_dim": self.retriever.dimension, "framework": ["PyTorch"]})
