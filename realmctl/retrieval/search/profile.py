"""The search profile: how blocks are searched where no option says otherwise, the same from the command line, the server, agents and Python."""

from __future__ import annotations

import dataclasses
import importlib.util
from dataclasses import dataclass
from typing import Any, Self

from realmctl.artifacts import Artifact
from realmctl.artifacts.series import readable_versions
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.settings import language_of
from realmctl.pipeline.choosing import beside
from realmctl.retrieval.names import HYBRID, Bm25Tokens, Fusion, check_options
from realmctl.retrieval.search.reranking import Reranking
from realmctl.retrieval.search.stems import stemmer_of

DEPTH = 100
"""Blocks of each ranking that take part in hybrid search at least, however few are shown."""
MOST_FOR_HYBRID = 500_000
"""Of more blocks hybrid search is no default, because the first one computes BM25 for minutes."""
WEIGHT = "bm25-weight"
"""Name of the series in a workspace that says how much BM25 counts."""
LOOKED_AT = 64
"""Blocks that show in which letters a text is written."""


@dataclass(frozen=True, kw_only=True)
class SearchProfile:
    """How blocks are searched.

    method: a searcher, or hybrid. bm25_stemmer, bm25_tokens: what BM25 compares, where it takes part; else None.
    fusion, bm25_weight, depth: of hybrid search, see `Hybrid`; else None. reranker, rerank_depth, rerank_fused: what reads the first hits, how many, and whether its order is fused with theirs; else None.
    """

    method: str
    bm25_stemmer: str | None = None
    bm25_tokens: Bm25Tokens | None = None
    fusion: Fusion | None = None
    bm25_weight: float | None = None
    depth: int | None = None
    reranker: str | None = None
    rerank_depth: int | None = None
    rerank_fused: bool | None = dataclasses.field(default=None, metadata={"after": "0.1.0"})

    @classmethod
    def of(
        cls,
        blocks: Artifact,
        method: str | None,
        *,
        has_index: bool = True,
        retriever: Artifact | None = None,
        bm25_stemmer: str | None = None,
        bm25_tokens: Bm25Tokens | None = None,
        fusion: Fusion | None = None,
        bm25_weight: float | None = None,
        depth: int | None = None,
    ) -> Self:
        """Return the profile of blocks with what options say. None: the option is not given. retriever: what embeds the questions.

        Raises ConfigError for an option that the method does not obey.
        """
        method = method or default_method(len(Corpus(blocks)) if has_index else None)
        check_options(method, bm25_stemmer, bm25_tokens, bm25_weight, fusion)
        found: dict[str, Any] = {"method": method}
        if method in ("bm25", HYBRID):
            found["bm25_stemmer"] = bm25_stemmer or (stemmer_for(blocks) if bm25_tokens is None else None)
            found["bm25_tokens"] = "words" if found["bm25_stemmer"] else bm25_tokens or "pieces"
        if method == HYBRID:
            found["fusion"], found["depth"] = fusion or "scores", depth or DEPTH
            if bm25_weight is None:
                other = any((bm25_stemmer, bm25_tokens, fusion))  # scores that nothing was weighed for
                bm25_weight = 1.0 if retriever is None or other else weighed(blocks, retriever)
            found["bm25_weight"] = bm25_weight
        return cls(**found)

    def reranked(self, by: Reranking | None) -> Self:
        """The same search with a reranker behind it."""
        return self if by is None else dataclasses.replace(self, **by.told())

    def told(self) -> dict[str, Any]:
        """What an answer says of its search: the fields that count for the method."""
        return {name: value for name, value in vars(self).items() if value is not None}


def weighed(blocks: Artifact, retriever: Artifact) -> float:
    """The weight of BM25 that the workspace of the blocks has for a retriever, the newest one; 1 where it has none."""
    for each in readable_versions(beside(blocks, WEIGHT)):
        if each.manifest.inputs.get("retriever") == retriever.content:
            return float(each.metrics["bm25_weight"])
    return 1.0


def default_method(indexed: int | None) -> str:
    """Return the method where none is named, of so many blocks with an index (None: there is no index): hybrid, dense for many, else bm25."""
    if indexed is None:
        return "bm25"
    return HYBRID if indexed <= MOST_FOR_HYBRID else "dense"


def stemmer_for(blocks: Artifact) -> str | None:
    """Return the Snowball stemmer of the blocks' language; None where there is none, or no PyStemmer.

    Blocks are English where nobody said their language, so English counts only where most letters are those of English.
    """
    language = language_of(blocks)
    if importlib.util.find_spec("Stemmer") is None or (language == "en" and not _in_english_letters(Corpus(blocks))):
        return None
    return stemmer_of(language)


def _in_english_letters(corpus: Corpus) -> bool:
    step = max(1, len(corpus) // LOOKED_AT)
    letters = [each for row in range(0, len(corpus), step) for each in corpus.block(row).text if each.isalpha()]
    return 10 * sum(map(str.isascii, letters)) >= 9 * len(letters)
