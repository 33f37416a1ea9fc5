"""BM25 retrieval: the sparse baseline, over the wordpieces of title and body.

The score of a block for a question is summed over the question's wordpieces w (Lucene's form, without its constant
factor): log(1 + (N - n_w + .5) / (n_w + .5)) tf / (tf + k1 (1 - b + b length / mean length)), where n_w of the N blocks
hold w. The blocks are tokenised into wordpieces already, so no words are counted.

A search keeps the postings of many blocks as an artifact beside them, and opens them memory-mapped at the next start. It needs no PyTorch.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact, Origin, Writer
from realmctl.artifacts.arrays import open_array
from realmctl.artifacts.lineage import lineage_of, require_same_vocabulary
from realmctl.artifacts.series import readable_versions
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import InputError, RealmctlError, one_line, require_package
from realmctl.index.index_type import open_index
from realmctl.index.merged import best_among
from realmctl.index.protocol import Index, RowIds, Scores, best_rows
from realmctl.log import say
from realmctl.pipeline.choosing import beside
from realmctl.pipeline.making import make_version, write_version
from realmctl.retrieval.names import Bm25Tokens
from realmctl.retrieval.search.block_search import Ranker, SearchInputs
from realmctl.retrieval.search.stems import Stems, check_stemmer
from realmctl.tokens.tokenizer import Tokenizer

K1, B = 0.9, 0.4
"""Parameters of BM25 as Anserini sets them for passages; they are written into every bm25.json."""
ARRAYS = ("data", "indices", "indptr")


def _without_jax(name: str) -> ModuleType:
    """Import a package as if JAX were not installed, unless it is imported already.

    bm25s computes with JAX as soon as it is imported, and JAX then takes three quarters of a GPU's memory. We have no use for its result.
    """
    if "jax" in sys.modules:
        return importlib.import_module(name)
    sys.modules["jax"] = None  # type: ignore[assignment]
    try:
        return importlib.import_module(name)
    finally:
        del sys.modules["jax"]


class Postings:
    """An inverted index: what each wordpiece adds to the score of each block that holds it, a sparse matrix in CSC layout.

    `of` computes BM25's with bm25s, which is not needed to search it.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], blocks: int, part: Artifact | None = None) -> None:
        self.arrays, self.blocks, self._part = arrays, blocks, part

    @classmethod
    def of(cls, corpus: Passages, words: int) -> Postings:
        """The postings of passages whose wordpiece ids are below `words`. Raises ResourceError when bm25s is not installed."""
        require_package("bm25s", "bm25", "BM25")
        bm25 = _without_jax("bm25s").BM25(k1=K1, b=B, method="lucene")
        made = bm25.build_index_from_ids(range(words), _Documents(corpus), show_progress=False)
        return cls({name: made[name] for name in ARRAYS}, len(corpus))

    @classmethod
    def of_text(cls, passages: Passages, words: Tokenizer, stems: Stems | None) -> Postings:
        """The postings of wordpieces, or of stems, which are read from the passages here."""
        if stems is None:
            return cls.of(passages, words.rows)
        for row in range(len(passages)):
            stems.read(passages.title(row)), stems.read(passages.tokens(row))
        return cls.of(_StemmedPassages(passages, stems), len(stems))

    @classmethod
    def load(cls, part: Artifact, blocks: int, words: int) -> Postings:
        """Open what `save` wrote, memory-mapped.

        Raises InputError when it has other numbers of blocks or wordpieces.
        """
        arrays = {name: open_array(part.file(f"{name}.npy")) for name in ARRAYS}
        data, indices, indptr = arrays.values()
        if (
            not data.ndim == indices.ndim == indptr.ndim == 1
            or (data.dtype.kind, indices.dtype.kind, indptr.dtype.kind) != ("f", "i", "i")
            or len(indptr) != words + 1
            or not int(indptr[-1]) == len(data) == len(indices)
        ):
            raise _unfit(part, blocks, words)
        return cls(arrays, blocks, part)

    def save(self, out: Writer) -> None:
        """Write data.npy float32, indices.npy int32 (blocks) and indptr.npy int64 (by wordpiece): a matrix in CSC layout."""
        for name, array in self.arrays.items():
            np.save(out.file(f"{name}.npy"), array, allow_pickle=False)

    def score(self, question: TokenIds) -> NDArray[Any]:
        """The score of every block, [blocks] of the type of the data. A wordpiece counts as often as it is in the question."""
        data, indices, indptr = (self.arrays[name] for name in ARRAYS)
        scores = np.zeros(self.blocks, dtype=data.dtype)
        for word in question[question < len(indptr) - 1].tolist():
            own = slice(int(indptr[word]), int(indptr[word + 1]))
            rows = indices[own]
            if len(rows) and not 0 <= rows.min() <= rows.max() < self.blocks:  # of a file: not read before
                raise _unfit(self._part, self.blocks, len(indptr) - 1)
            scores[rows] += data[own]  # each block is there once
        return scores


def _unfit(part: Artifact | None, blocks: int, words: int) -> InputError:
    return InputError(f"{part} does not fit {blocks} blocks in {words} wordpieces. Make it again.")


class Passages(Protocol):
    """What BM25 reads: titles and bodies in wordpieces, by row."""

    def __len__(self) -> int: ...
    def title(self, row: int) -> TokenIds: ...
    def tokens(self, row: int) -> TokenIds: ...


class _StemmedPassages:
    """Passages as the stems of their words."""

    def __init__(self, passages: Passages, stems: Stems) -> None:
        self.passages, self.stems = passages, stems

    def __len__(self) -> int:
        return len(self.passages)

    def title(self, row: int) -> TokenIds:
        return self.stems.known(self.passages.title(row))

    def tokens(self, row: int) -> TokenIds:
        return self.stems.known(self.passages.tokens(row))


class _Documents:
    """Title and body of each passage as a list of wordpieces, computed whenever bm25s iterates over them."""

    def __init__(self, corpus: Passages) -> None:
        self.corpus = corpus

    def __len__(self) -> int:
        return len(self.corpus)

    def __iter__(self) -> Iterator[list[int]]:
        for row in range(len(self.corpus)):
            yield self.corpus.title(row).tolist() + self.corpus.tokens(row).tolist()


KEPT_FROM = 1_000
"""BM25 of fewer blocks is computed at each start, which takes less time than writing it."""


class Bm25Ranking(Ranker):
    """BM25 without anything to train.

    Args:
        blocks: The blocks.
        stemmer: Snowball stemmer with which stems of words are compared; None compares `compared`.
        compared: Wordpieces, or whole words.
    """

    least_score: ClassVar[float] = 0.0  # such a block shares no wordpiece with the question

    def __init__(self, blocks: Artifact, stemmer: str | None = None, compared: Bm25Tokens = "pieces") -> None:
        self.corpus, self.wordpiece = Corpus(blocks), Tokenizer.load(blocks.path)
        self.by_words = stemmer is not None or compared == "words"
        self.stemmer = stemmer
        self.postings, self.stems = _kept(self) if len(self.corpus) >= KEPT_FROM else _computed(self)

    @classmethod
    def start(cls, inputs: SearchInputs) -> Self:
        """Return BM25 over blocks. Raises ResourceError without bm25s or PyStemmer, ConfigError for a stemmer that is not known."""
        require_package("bm25s", "bm25", "BM25")
        check_stemmer("--bm25-stemmer", inputs.bm25_stemmer)
        return cls(inputs.blocks, inputs.bm25_stemmer, inputs.bm25_tokens)

    def over(self, blocks: Artifact, index: Artifact | None, opener: Callable[[Path, str], Index] = open_index) -> Self:
        """Return BM25 of other blocks of the same vocabulary; no index is used."""
        require_same_vocabulary(self.corpus.artifact, blocks)
        return type(self)(blocks, self.stemmer, "words" if self.by_words else "pieces")

    def nearest(self, tokens: Sequence[TokenIds], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The best blocks by BM25; equal scores are ordered by rising row."""
        best = [best_rows(self._scores(question), min(k, len(self.corpus))) for question in tokens]
        scores_BK, rows_BK = (np.stack(parts) for parts in zip(*best, strict=True))
        return scores_BK, rows_BK

    def nearest_among(self, tokens: Sequence[TokenIds], k: int, rows: RowIds) -> Iterator[tuple[Scores, RowIds]]:
        for question in tokens:
            yield from best_among(partial(np.take, self._scores(question)[None], axis=1), k, rows)

    def _scores(self, question: TokenIds) -> NDArray[Any]:
        return self.postings.score(looked_for(question, self.wordpiece, self.stems))


def looked_for(question: TokenIds, words: Tokenizer, stems: Stems | None) -> TokenIds:
    """What a question looks for. [UNK] stands for other words in each text, so it is not looked for."""
    question = question[question != words.unk]
    return question if stems is None else stems.known(question)


KEPT = "kept-bm25"
"""Name of the series in a workspace. A ranking of BM25 may be called bm25."""


def _computed(ranking: Bm25Ranking) -> tuple[Postings, Stems | None]:
    stems = Stems(ranking.stemmer, ranking.wordpiece) if ranking.by_words else None
    return Postings.of_text(ranking.corpus, ranking.wordpiece, stems), stems


def _kept(ranking: Bm25Ranking) -> tuple[Postings, Stems | None]:
    """The postings that the workspace of the blocks keeps; they are made and kept where there are none, and computed where nothing can be kept."""
    blocks = ranking.corpus.artifact
    settings = {
        "stemmer": ranking.stemmer,
        "stems": ranking.stemmer and version("PyStemmer"),  # they change with its releases
        "compared": "words" if ranking.by_words else "pieces",
        "k1": K1,
        "b": B,
    }
    origin = Origin("bm25", "search", 1, settings, {"blocks": blocks.content}, lineage_of({"blocks": blocks}))
    series = beside(blocks, KEPT)
    found = [each for each in readable_versions(series) if each.recipe == origin.recipe]
    if not found:
        say(f"search: BM25 of {len(ranking.corpus):,} blocks is computed once, and kept as {series}")
        computed = _computed(ranking)

        def write(out: Writer) -> Mapping[str, Any]:
            postings, stems = computed
            postings.save(out)
            if stems is not None:
                stems.save(out)
            return {"rows": postings.blocks}

        try:
            make_version(series, origin, lambda writer: write_version(writer, write))
        except (RealmctlError, OSError) as error:  # a folder that nobody may write, or another process that writes
            say(f"search: BM25 is not kept: {one_line(error)}")
        return computed
    stems = Stems.load(ranking.stemmer, ranking.wordpiece, found[0]) if ranking.by_words else None
    return Postings.load(found[0], len(ranking.corpus), ranking.wordpiece.rows if stems is None else len(stems)), stems
