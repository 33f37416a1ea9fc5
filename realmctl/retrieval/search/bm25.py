"""BM25 retrieval: the sparse baseline, over the wordpieces of title and body.

The score of a block for a question is summed over the question's wordpieces w (Lucene's form, without its constant
factor): log(1 + (N - n_w + .5) / (n_w + .5)) tf / (tf + k1 (1 - b + b length / mean length)), where n_w of the N blocks
hold w. The blocks are tokenised into wordpieces already, so no words are counted. Raw scores are too small in
comparison with a reader's scores, so one learned factor scales them.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Artifact, Writer, require_descent, require_same_vocabulary, writing
from realmctl.artifacts.arrays import open_array
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import InputError, as_realmctl_error, require_package
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index, by_score
from realmctl.log import say
from realmctl.retrieval.names import Bm25Tokens
from realmctl.retrieval.search.searcher import Searcher, SearchInputs
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

    def __init__(self, arrays: Mapping[str, NDArray[Any]], blocks: int) -> None:
        self.arrays, self.blocks = arrays, blocks

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
            len(indptr) != words + 1
            or not int(indptr[-1]) == len(data) == len(indices)
            or indices.max(initial=0) >= blocks
        ):
            raise InputError(f"{part} does not fit {blocks} blocks in {words} wordpieces. Make it again.")
        return cls(arrays, blocks)

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
            scores[indices[own]] += data[own]  # each block is there once
        return scores


class BM25Searcher(Searcher):
    """Postings of the blocks, and the learned factor that scales their scores."""

    least_score = 0.0  # such a block shares no wordpiece with the question

    def __init__(
        self,
        blocks: Artifact,
        device: str,
        saved: Artifact | None = None,
        stemmer: str | None = None,
        compared: Bm25Tokens = "pieces",
    ) -> None:
        """Load the part `saved` of a qa-model, or compute the postings: of stems where a stemmer is named, else of what is `compared`.

        Raises ResourceError without bm25s, MismatchError when `saved` was made from other blocks.
        """
        super().__init__(blocks, device)
        self.stems = Stems(stemmer, self.wordpiece) if stemmer or compared == "words" else None
        if saved is None:
            self.postings, self.scale = (
                Postings.of_text(self.corpus, self.wordpiece, self.stems),
                LearnedScale().to(self.device),
            )
        else:
            require_descent(saved, blocks)
            self.postings = Postings.load(saved, len(self.corpus), self._words)
            self.scale = LearnedScale(_saved_scale(saved)).to(self.device)

    @classmethod
    def check(cls, inputs: SearchInputs) -> None:
        """Raise ResourceError unless bm25s is installed."""
        require_package("bm25s", "bm25", "BM25")
        check_stemmer("--bm25-stemmer", inputs.bm25_stemmer)

    @classmethod
    def start(cls, inputs: SearchInputs) -> Self:
        return cls(inputs.blocks, inputs.device, stemmer=inputs.bm25_stemmer, compared=inputs.bm25_tokens)

    @classmethod
    def reopen(cls, qa_model: Artifact, inputs: SearchInputs) -> Self:
        """Open a qa-model's BM25. For other blocks of its vocabulary, such as revised ones, the postings are computed anew."""
        saved = qa_model.part("bm25")
        if saved.lineage.get("blocks") == inputs.blocks.content:
            return cls(inputs.blocks, inputs.device, saved)
        require_same_vocabulary(qa_model.part("reader"), inputs.blocks)
        say(f"{qa_model} holds BM25 of other blocks, so BM25 of {inputs.blocks} is computed now")
        made = cls(inputs.blocks, inputs.device)
        made.scale = LearnedScale(_saved_scale(saved)).to(made.device)
        return made

    def over(self, blocks: Artifact, index: Artifact | None, opener: Callable[[Path, str], Index] = open_index) -> Self:
        """Return a searcher of other blocks with the same learned factor. Their postings are computed, and no index is used."""
        require_same_vocabulary(self.corpus.artifact, blocks)
        other = copy.copy(self)
        other.corpus = Corpus(blocks)
        other.postings = Postings.of_text(other.corpus, other.wordpiece, other.stems)
        return other

    def _asked(self, question: TokenIds) -> TokenIds:
        """What a question looks for. [UNK] stands for other words in each text, so it is not looked for."""
        question = question[question != self.wordpiece.unk]
        return question if self.stems is None else self.stems.known(question)

    @property
    def _words(self) -> int:
        """One more than the largest wordpiece id."""
        return self.wordpiece.rows

    @property
    def learner(self) -> LearnedScale:
        """The scale."""
        return self.scale

    @property
    def lr_multiplier(self) -> float:
        """A multiplier above 1, because Adam changes a single number too slowly at the reader's learning rate."""
        return self.scale.LR_MULTIPLIER

    def nearest(self, tokens: Sequence[TokenIds], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The best blocks by scaled BM25; equal scores are ordered by rising row."""
        best = [best_rows(self.postings.score(self._asked(question)), min(k, len(self.corpus))) for question in tokens]
        scores_BK, rows_BK = (np.stack(parts) for parts in zip(*best, strict=True))
        return scores_BK * np.float32(self.scale.value), rows_BK

    def scores(self, tokens: Sequence[TokenIds], rows_QK: NDArray[np.int64]) -> Tensor:
        """Scaled BM25, with a gradient for the scale."""
        raw = [self.postings.score(self._asked(question))[rows] for question, rows in zip(tokens, rows_QK, strict=True)]
        scaled_QK: Tensor = self.scale(torch.from_numpy(np.stack(raw)).to(self.device))
        return scaled_QK

    def learnt(self) -> Mapping[str, float]:
        """The scale."""
        return {"bm25_scale": self.scale.value}

    def save(self, out: Writer) -> None:
        """Write the part `bm25`: the postings, and bm25.json with the scale."""
        with writing(out.path / "bm25", dataclasses.replace(out.origin, kind="bm25")) as part:
            self.postings.save(part)
            described = {"method": "lucene", "k1": K1, "b": B, "scale": self.scale.value}
            part.file("bm25.json").write_text(json.dumps(described, indent=1) + "\n")


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


def best_rows(scores: NDArray[Any], k: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the k best scores and their rows, best first; among equal scores the lower rows."""
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    rows = np.flatnonzero(scores >= least)
    best, ids = by_score(scores[rows][None], rows[None])
    return best[0, :k], ids[0, :k]


def _saved_scale(part: Artifact) -> float:
    path = part.file("bm25.json")
    try:
        scale = float(json.loads(path.read_text())["scale"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"{path} does not name the scale ({error}). Make {part} again."
        ) from None
    if not 0 < scale < float("inf"):
        raise InputError(f"{path}: the scale {scale} is not a positive number. Make {part} again.")
    return scale


class LearnedScale(nn.Module):
    """The map score -> exp(w) * score with one trained parameter w.

    `LR_MULTIPLIER` is the factor of its learning rate. Adam moves a number by at most the learning rate, and 300 steps
    at 3e-4 cannot halve or double the scale; at 100 times that rate about twenty steps do.
    """

    LR_MULTIPLIER = 100.0

    def __init__(self, start: float = 1.0) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(start)))

    def forward(self, score: Tensor) -> Tensor:
        """Return the scaled scores, float32, in the shape of `score`."""
        return self.log_scale.exp() * score.float()

    @property
    def value(self) -> float:
        """The current scale, exp(w)."""
        return math.exp(float(self.log_scale.detach()))
