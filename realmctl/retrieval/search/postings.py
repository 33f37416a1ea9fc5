"""BM25 retrieval: the sparse baseline, over the wordpieces of title and body.

The score of a block for a question is summed over the question's wordpieces w (Lucene's form, without its constant
factor): log(1 + (N - n_w + .5) / (n_w + .5)) tf / (tf + k1 (1 - b + b length / mean length)), where n_w of the N blocks
hold w. The blocks are tokenised into wordpieces already, so no words are counted.

A search keeps the postings of many blocks as an artifact beside them, and opens them memory-mapped at the next start. It needs no PyTorch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact, Origin, Writer
from realmctl.artifacts.arrays import open_array
from realmctl.artifacts.lineage import lineage_of, require_same_vocabulary
from realmctl.artifacts.series import readable_versions
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import InputError, RealmctlError, one_line
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
AT_ONCE = 1024
"""Passages whose wordpieces are sorted at a time."""
Ints = NDArray[np.int64]
Place = Callable[[str, type, int], NDArray[Any]]
"""Gives an array of a name, a type and a length to write into."""


def _in_memory(_: str, kind: type, count: int) -> NDArray[Any]:
    return np.empty(count, kind)


def _in_files(out: Writer) -> Place:
    """Arrays of an artifact that is written. Their place on the disk is taken at once: a mapped file that finds none would end the process."""

    def place(name: str, kind: type, count: int) -> NDArray[Any]:
        path = out.file(f"{name}.npy")
        if not count:  # cannot be mapped
            np.save(path, np.empty(0, kind), allow_pickle=False)
            return np.empty(0, kind)
        array = np.lib.format.open_memmap(path, "w+", kind, (count,))
        if hasattr(os, "posix_fallocate"):
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        return array

    return place


class Postings:
    """An inverted index: what each wordpiece adds to the score of each block that holds it, a sparse matrix in CSC layout."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], blocks: int, part: Artifact | None = None) -> None:
        self.arrays, self.blocks, self._part = arrays, blocks, part

    @classmethod
    def of_text(cls, passages: Passages, words: Tokenizer, stems: Stems | None, place: Place = _in_memory) -> Postings:
        """BM25 of wordpieces, or of stems, which are read from the passages here. `place` gives the arrays `data` and `indices`.

        Two passes: one counts, and one writes each number where it belongs. Beside the arrays the memory holds a few numbers of each passage and word.
        Raises InputError for passages in another vocabulary.
        """
        holding_V, length_N = np.zeros(words.rows if stems is None else 0, np.int64), np.zeros(len(passages), np.int64)
        for rows, length, word_P, _, _ in _sorted(passages, stems):
            length_N[rows] = length
            if stems is None and word_P.max(initial=0) >= words.rows:
                raise InputError(f"Wordpieces do not fit a vocabulary of {words.rows}. Make the blocks again.")
            more_V = np.bincount(word_P, minlength=len(holding_V))
            more_V[: len(holding_V)] += holding_V
            holding_V = more_V
        idf_V = np.log1p((len(passages) - holding_V + 0.5) / (holding_V + 0.5))
        mean = length_N.sum() / max(1, len(length_N)) or 1
        norm_N = K1 * (1 - B + B * length_N / mean)
        indptr = np.concatenate([[0], np.cumsum(holding_V)])
        data, indices = place("data", np.float32, int(indptr[-1])), place("indices", np.int32, int(indptr[-1]))
        next_V = indptr[:-1].copy()
        for _, _, word_P, row_P, times_P in _sorted(passages, stems):
            own, first, count = np.unique(word_P, return_index=True, return_counts=True)
            place_P = np.arange(len(word_P)) + np.repeat(next_V[own] - first, count)
            data[place_P] = idf_V[word_P] * times_P / (times_P + norm_N[row_P])
            indices[place_P] = row_P
            next_V[own] += count
        return cls({"data": data, "indices": indices, "indptr": indptr}, len(passages))

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
            if not (path := out.file(f"{name}.npy")).exists():  # `_in_files` wrote it
                np.save(path, array, allow_pickle=False)

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


def _sorted(passages: Passages, stems: Stems | None) -> Iterator[tuple[slice, list[int], Ints, Ints, Ints]]:
    """Yield parts of the passages: their rows, their lengths in words, and each word of each passage once, by word and row: word, row and how often, int64 [P]."""
    read = np.asarray if stems is None else stems.read
    for first in range(0, len(passages), AT_ONCE):
        rows = range(first, min(first + AT_ONCE, len(passages)))
        texts = [np.concatenate([read(passages.title(row)), read(passages.tokens(row))]) for row in rows]
        length = [len(text) for text in texts]
        key = np.concatenate(texts).astype(np.int64) * AT_ONCE + np.repeat(np.arange(len(rows)), length)
        found_P, times_P = np.unique(key, return_counts=True)
        yield slice(first, rows.stop), length, found_P // AT_ONCE, found_P % AT_ONCE + first, times_P


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
        """Return BM25 over blocks. Raises ResourceError without PyStemmer, ConfigError for a stemmer that is not known."""
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


def _computed(ranking: Bm25Ranking, place: Place = _in_memory) -> tuple[Postings, Stems | None]:
    stems = Stems(ranking.stemmer, ranking.wordpiece) if ranking.by_words else None
    return Postings.of_text(ranking.corpus, ranking.wordpiece, stems, place), stems


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

        def write(out: Writer) -> Mapping[str, Any]:
            postings, stems = _computed(ranking, _in_files(out))
            postings.save(out)
            if stems is not None:
                stems.save(out)
            return {"rows": postings.blocks}

        try:
            found = [make_version(series, origin, lambda writer: write_version(writer, write))]
        except (RealmctlError, OSError) as error:  # a folder that nobody may write, or another process that writes
            say(f"search: BM25 is not kept: {one_line(error)}")
            return _computed(ranking)
    stems = Stems.load(ranking.stemmer, ranking.wordpiece, found[0]) if ranking.by_words else None
    return Postings.load(found[0], len(ranking.corpus), ranking.wordpiece.rows if stems is None else len(stems)), stems
